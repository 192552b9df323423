/* SPDX-License-Identifier: BSD-3-Clause */
/* What HTTP/1 adds to the plan of a connection (RFC 9112, RFC 9110 13, 14): versions, the end of
 * the connection, ranges, preconditions, framing of uploads. Draws from a generator of its own, so
 * that the rest of a seed is the same with HTTP/2. */
#include <inttypes.h>
#include <stdio.h>

#include "h1.h"
#include "sim.h"

static void expect_text(struct sim_request *r, uint16_t status, const char *text)
{
    r->status = status;
    r->text = text;
    r->length = strlen(text);
    r->body_bytes = strcmp(r->method, "HEAD") == 0 ? 0 : r->length;
}

static void plan_range(struct sim_request *r, struct nj_prng *p)
{
    uint64_t size = r->length, first = nj_prng_next(p) % size;
    uint64_t n = 1 + nj_prng_next(p) % (size - first);

    switch (nj_prng_below(p, 4)) {
    case 0: /* to the end */
        n = size - first;
        snprintf(r->field, sizeof r->field, "Range: bytes=%" PRIu64 "-\r\n", first);
        break;
    case 1: /* the last n bytes */
        first = size - n;
        snprintf(r->field, sizeof r->field, "Range: bytes=-%" PRIu64 "\r\n", n);
        break;
    case 2: /* none of it */
        snprintf(r->field, sizeof r->field, "Range: bytes=%" PRIu64 "-\r\n", size);
        snprintf(r->range, sizeof r->range, "bytes */%" PRIu64, size);
        expect_text(r, 416, "416 Range Not Satisfiable\n");
        return;
    default:
        snprintf(r->field, sizeof r->field, "Range: bytes=%" PRIu64 "-%" PRIu64 "\r\n", first,
                 first + n - 1);
    }
    r->status = 206;
    r->first = first;
    r->length = r->body_bytes = n;
    snprintf(r->range, sizeof r->range, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first,
             first + n - 1, size);
}

/* The files of these requests were modified at SIM_MODIFIED, and do not change. */
static void plan_condition(struct sim_request *r, struct nj_prng *p)
{
    static const struct {
        const char *field;
        uint16_t status;
    } conditions[] = {
        {"If-None-Match: *\r\n", 304},
        {"If-Modified-Since: " SIM_MODIFIED "\r\n", 304},
        {"If-Unmodified-Since: Sat, 12 Sep 2020 00:00:00 GMT\r\n", 412},
        {"If-Match: \"another\"\r\n", 412},
        {"If-None-Match: \"another\"\r\n", 200},
        {"If-Modified-Since: Sat, 12 Sep 2020 00:00:00 GMT\r\n", 200},
        {"If-Range: \"another\"\r\nRange: bytes=1-2\r\n", 200},
    };
    uint32_t i = nj_prng_below(p, sizeof conditions / sizeof conditions[0]);

    snprintf(r->field, sizeof r->field, "%s", conditions[i].field);
    if (conditions[i].status == 412)
        expect_text(r, 412, "412 Precondition Failed\n");
    if (conditions[i].status == 304) {
        r->status = 304;
        r->body_bytes = 0;
    }
}

/* Two of three uploads are sent back, the others are refused. */
static void plan_echo(struct sim_request *r, struct nj_prng *p)
{
    uint32_t dice = nj_prng_below(p, 3);

    if (dice == 0)
        return;
    r->echoes = true;
    r->may_be_busy = false;
    r->status = 200;
    r->text = NULL;
    r->length = r->body_bytes = r->upload;
    snprintf(r->path, sizeof r->path, dice == 1 ? "/echo" : "/echo-trailer");
}

static void plan_request(struct sim_request *r, struct nj_prng *p, bool has_routes)
{
    bool is_constant = r->status == 200 && !r->breaks && !r->may_break;

    r->is_1_0 = nj_prng_below(p, 8) == 0;
    r->keeps = nj_prng_below(p, 8) > 0;
    if (strcmp(r->method, "POST") == 0) {
        if (has_routes)
            plan_echo(r, p);
        r->is_chunked = !r->is_1_0 && nj_prng_below(p, 2);
        r->expects = !r->is_1_0 && nj_prng_below(p, 4) == 0;
    }
    if (r->reset_after != NJ_NEVER && nj_prng_below(p, 3) > 0)
        r->reset_after = NJ_NEVER; /* it ends the connection, not only the request */
    if (!is_constant || r->reset_after != NJ_NEVER)
        return;
    uint32_t dice = nj_prng_below(p, 4);
    if (dice == 0 && r->length > 0 && strcmp(r->method, "GET") == 0)
        plan_range(r, p);
    else if (dice == 1)
        plan_condition(r, p);
}

void nj_sim_h1_plan(struct sim_conn *c)
{
    struct nj_prng *p = &c->h1.prng;

    nj_prng_init(p, c->sim->seed ^ (0x4771 + (uint64_t)c->index));
    for (uint32_t i = 0; i < c->n_requests; i++)
        plan_request(&c->req[i], p, c->sim->mix.http1);
    if (nj_prng_below(p, 3) == 0) /* requests behind it are not answered */
        c->req[nj_prng_below(p, c->n_requests)].says_close = true;
    c->h1.alpn = nj_prng_below(p, 4) > 0;
}
