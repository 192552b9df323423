/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of a connection (RFC 9113 5.4.1). The function that detects a reason to end the connection
 * records it here, and returns to its caller. nj_h2_input() and nj_h2_output() queue the GOAWAY
 * before they return (goaway.c).
 */
#include "h2/h2_internal.h"
#include "telem/counters_conn.h"

void nj__h2_record_end(struct nj_h2 *h, enum nj__h2_end why, enum nj_h2_error_code code)
{
    if (h->end)
        return;
    h->end = (uint8_t)why;
    h->end_code = code;
    if (why == NJ__H2_END_PROTOCOL)
        nj_count(h->core->counters, NJ_C_h2_error);
    else if (why == NJ__H2_END_ABUSE)
        nj_count(h->core->counters, NJ_C_h2_abuse);
}

void nj__h2_conn_error(struct nj_h2 *h, enum nj_h2_error_code code)
{
    nj__h2_record_end(h, NJ__H2_END_PROTOCOL, code);
}

void nj__h2_out_of_memory(struct nj_h2 *h)
{
    h->write_closed = true; /* the sink may hold part of a frame */
    nj__h2_record_end(h, NJ__H2_END_MEMORY, NJ_H2_INTERNAL_ERROR);
}

void nj_h2_end_for_abuse(struct nj_h2 *h, enum nj_h2_abuse why)
{
    if (!h->end)
        h->abuse = (uint8_t)why;
    nj__h2_record_end(h, NJ__H2_END_ABUSE, NJ_H2_ENHANCE_YOUR_CALM);
}

enum nj_h2_abuse nj_h2_abuse_reason(const struct nj_h2 *h)
{
    return (enum nj_h2_abuse)h->abuse;
}

bool nj_h2_has_protocol_error(const struct nj_h2 *h)
{
    return h->end == NJ__H2_END_PROTOCOL;
}
