/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HTTP/1.1 (RFC 9112) for a connection of the load generator. Its streams are requests that follow
 * one another without waiting for the responses (9.3.2). A connection that the server wants to
 * close is not used further; the requests behind the last response end as LOAD_LOST.
 */
#pragma once

#include "framing.h"
#include "h1_response.h"

struct h1_conn {
    struct load_conn conn; /* `settled`: a response's head was received */
    struct h1_response response;
    uint32_t first, mask;         /* slot of the oldest request in flight */
    struct load_request *request; /* in the order of the responses, in a ring */
    uint64_t upload_left;         /* bytes of the last request's body that are not sent yet */
};

/* Its functions take the `conn` of a struct h1_conn. */
extern const struct load_framing h1_framing;
