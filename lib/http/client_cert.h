/* SPDX-License-Identifier: BSD-3-Clause */
/* The verified certificate of a client, shared by its connection and its requests: a handler on a
 * worker may outlive the connection. Any thread. */
#pragma once

#include "base/ref.h"
#include "base/str.h"

struct nj_client_cert {
    struct nj_ref ref;
    struct nj_str subject; /* RFC 4514 */
};

/* Copies the subject. Returns NULL if there is no memory. */
struct nj_client_cert *nj_client_cert_new(const char *subject);

/* `c` may be NULL. */
static inline struct nj_str nj_client_cert_subject(const struct nj_client_cert *c)
{
    return c ? c->subject : (struct nj_str){NULL, 0};
}
