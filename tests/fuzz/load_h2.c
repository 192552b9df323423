/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: bytes of a server for a connection of the load generator. The first four bytes of
 * the input are parameters (size of the reads, streams, flags, room for output); the rest comes
 * from the server. Every request must end exactly once.
 */
#include "h2.h"

#include <stdlib.h>

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { UPLOADS = 1, SETTLED = 2, GIVES_UP = 4, SMALL_WINDOW = 8 };

struct fuzz {
    uint32_t n_asked, n_ended;
};

static void ended(void *user, const struct load_request *r, enum load_end end, nj_ns now)
{
    struct fuzz *f = user;

    NJ_CHECK(end != LOAD_DONE || r->status >= 200);
    f->n_ended++;
}

static void came(void *user, uint32_t n_bytes)
{
    (void)user, (void)n_bytes;
}

static void ask_all(struct load_conn *c, struct fuzz *f, nj_ns now, struct load_out *out)
{
    while (h2_framing.room(c) > 0 && f->n_asked < 1000 &&
           out->n_max - out->n_bytes >= c->plan->request_max) {
        h2_framing.ask(c, f->n_asked % 2, now, out);
        f->n_asked++;
    }
    if (!out->full)
        h2_framing.upload(c, out);
    NJ_CHECK(f->n_asked - f->n_ended == c->n_open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const uint8_t settings[9] = {0, 0, 0, 4};
    static const char *const fields[] = {"accept: */*"};
    struct load_plan plan = {.n_paths = 2,
                             .path = {{"/", 1, false}, {"/second", 7, false}},
                             .came = came,
                             .ended = ended};
    struct fuzz f = {0};
    struct h2_conn c;

    if (n_bytes < 4)
        return 0;
    uint32_t step = data[0] ? data[0] : 100000, flags = data[2];
    struct load_out out = {.n_max = 2000u + data[3] * 16u};
    out.data = malloc(out.n_max);
    plan.streams = 1 + data[1] % 8;
    plan.upload_bytes = flags & UPLOADS ? 3000 : 0;
    plan.window = flags & SMALL_WINDOW ? 10 : 1 << 20;
    NJ_CHECK(h2_framing.make(&plan, "host", fields, 1) &&
             h2_framing.open(&c.conn, &plan, &f, &out));
    bool good = !(flags & SETTLED) || h2_framing.input(&c.conn, settings, sizeof settings, 1, &out);
    data += 4;
    n_bytes -= 4;
    for (nj_ns now = 2; good && n_bytes > 0; now++) {
        uint32_t n = n_bytes < step ? (uint32_t)n_bytes : step;
        ask_all(&c.conn, &f, now, &out);
        good = h2_framing.input(&c.conn, data, n, now, &out);
        NJ_CHECK(good == (c.conn.fault == NULL) && out.n_bytes <= out.n_max);
        if (flags & GIVES_UP)
            h2_framing.give_up(&c.conn, now - 1, now, &out);
        if (!out.full)
            out.n_bytes = 0;
        data += n;
        n_bytes -= n;
    }
    h2_framing.close(&c.conn, 99);
    NJ_CHECK(f.n_asked == f.n_ended);
    free(out.data);
    return 0;
}
