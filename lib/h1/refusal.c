/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that the engine refuses: malformed, beyond a limit, or too slow. The connection ends
 * with them, since what follows cannot be told from the rest of the request (RFC 9112 9.6, 11.2).
 */
#include "h1/h1_internal.h"

#include "telem/counters_http.h"

void nj__h1_count_refusal(struct nj_h1 *h, nj_counter why)
{
    const struct nj_h1_events *ev = h->ctx->events;

    nj_count(h->ctx->counters, why);
    if (ev->on_refusal_counted)
        ev->on_refusal_counted(h->user, why);
}

void nj__h1_refuse(struct nj_h1 *h, const struct nj_request_head *req, uint16_t status,
                   nj_counter why)
{
    static const struct nj_request_head none = {.version = NJ_HTTP_1_1};
    const struct nj_h1_events *ev = h->ctx->events;
    /* One response for each request: it may have been sent before the rest of the body. */
    bool responds = !h->has_response && !h->reset && !h->write_closed &&
                    (h->open || h->read == NJ__H1_READ_HEAD);

    nj__h1_count_refusal(h, why);
    if (responds) {
        if (!h->open) { /* it was not counted by on_request, and is a line of the access log */
            nj_count(h->ctx->counters, NJ_C_requests);
            h->number++;
            h->is_head = req && nj_str_eq(req->method, NJ_STR("HEAD"));
        }
        h->refusing = h->last = true;
        if (ev->on_refused)
            ev->on_refused(h->user, h, req ? req : &none, status);
        if (!h->has_response)
            (void)nj_h1_respond(h, status, NULL, 0, 0, NULL);
        h->refusing = false;
    }
    nj__h1_request_close(h, responds && !h->write_closed); /* it is the last one */
}
