/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds the subject of a client's certificate. Contract: client_cert.h. */
#include "http/client_cert.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static void free_cert(struct nj_ref *ref)
{
    free(nj_container_of(ref, struct nj_client_cert, ref));
}

struct nj_client_cert *nj_client_cert_new(const char *subject)
{
    size_t n = strlen(subject);
    struct nj_client_cert *c = malloc(sizeof *c + n);

    if (!c)
        return NULL;
    nj_ref_init(&c->ref, free_cert);
    memcpy(c + 1, subject, n);
    c->subject = (struct nj_str){(const char *)(c + 1), (uint32_t)n};
    return c;
}
