/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: bytes of an HTTP/1.1 server for a connection of the load generator. The first three
 * bytes of the input are parameters (size of the reads, pipelined requests, flags); the rest comes
 * from the server. Every request must end exactly once, and each part of a body belongs to one.
 */
#include "h1.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { UPLOADS = 1, GIVES_UP = 2, FINISHES = 4 };

struct fuzz {
    uint32_t n_asked, n_ended;
    uint64_t n_came, n_body;
};

static void ended(void *user, const struct load_request *r, enum load_end end, nj_ns now)
{
    struct fuzz *f = user;

    NJ_CHECK(end != LOAD_DONE || (r->status >= 200 && r->status <= 999 && r->first_at > 0));
    f->n_ended++;
    f->n_body += r->n_body;
}

static void came(void *user, uint32_t n_bytes)
{
    NJ_CHECK(n_bytes > 0);
    ((struct fuzz *)user)->n_came += n_bytes;
}

static void ask_all(struct load_conn *c, struct fuzz *f, nj_ns now, struct load_out *out)
{
    do {
        while (h1_framing.room(c) > 0 && f->n_asked < 1000 &&
               out->n_max - out->n_bytes >= c->plan->request_max) {
            h1_framing.ask(c, f->n_asked % 2, now, out);
            f->n_asked++;
        }
    } while (h1_framing.upload(c, out) > 0);
    NJ_CHECK(out->n_bytes <= out->n_max && f->n_asked - f->n_ended == c->n_open);
    out->n_bytes = 0;
}

/* A copy, so that a sanitizer finds reads beyond the end. */
static bool give(struct load_conn *c, const uint8_t *data, uint32_t n, nj_ns now,
                 struct load_out *out)
{
    uint8_t *own = malloc(n);

    memcpy(own, data, n);
    bool good = h1_framing.input(c, own, n, now, out);
    free(own);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const char *const fields[] = {"accept: */*"};
    static uint8_t bytes[2000];
    struct load_plan plan = {.n_paths = 2,
                             .path = {{"/", 1, false}, {"/second", 7, false}},
                             .came = came,
                             .ended = ended};
    struct load_out out = {.data = bytes, .n_max = sizeof bytes};
    struct fuzz f = {0};
    struct h1_conn c;

    if (n_bytes < 3)
        return 0;
    uint32_t step = data[0] ? data[0] : 100000, flags = data[2];
    plan.streams = 1 + data[1] % 8;
    plan.upload_bytes = flags & UPLOADS ? 3000 : 0;
    NJ_CHECK(h1_framing.make(&plan, "host", fields, 1) &&
             h1_framing.open(&c.conn, &plan, &f, &out));
    bool good = true;
    data += 3;
    n_bytes -= 3;
    for (nj_ns now = 2; good && n_bytes > 0; now++) {
        uint32_t n = n_bytes < step ? (uint32_t)n_bytes : step;
        ask_all(&c.conn, &f, now, &out);
        good = give(&c.conn, data, n, now, &out);
        NJ_CHECK(good == (c.conn.fault == NULL));
        if (flags & GIVES_UP)
            h1_framing.give_up(&c.conn, now - 1, now, &out);
        data += n;
        n_bytes -= n;
    }
    if (good && flags & FINISHES)
        h1_framing.finish(&c.conn, 98);
    h1_framing.close(&c.conn, 99);
    NJ_CHECK(f.n_asked == f.n_ended && f.n_came == f.n_body);
    return 0;
}
