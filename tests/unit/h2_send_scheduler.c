/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/h2: the order of DATA between streams (RFC 9218 10), with and without a client's priority. */
#include "h2_rig.h"

#define ROOM (64u << 10) /* of the sink, each turn */

static struct rig *open_wide(void)
{
    struct rig *r = rig_new(NULL);

    rig_client_new(r, 1u << 30, false);
    nghttp2_submit_window_update(r->client, 0, 0, 1 << 30);
    cr_assert_eq(rig_run(r, 0), 0);
    r->room = ROOM;
    return r;
}

/* A GET of this many bytes; `priority` NULL: without a priority field. */
static int32_t get(struct rig *r, const char *path, const char *priority)
{
    nghttp2_nv nv[] = {RIG_NV(":method", "GET"), RIG_NV(":scheme", "http"), RIG_NV(":path", path),
                       RIG_NV(":authority", "host.example"),
                       RIG_NV("priority", priority ? priority : "")};
    int32_t id = nghttp2_submit_request(r->client, NULL, nv, priority ? 5 : 4, NULL, NULL);

    *rig_reply(r, id) = (struct rig_reply){.want = strtoull(path + 1, NULL, 10)};
    return id;
}

static void turns(struct rig *r, unsigned n)
{
    int rv = 0;

    while (n-- > 0)
        rig_turn(r, 0, &rv);
    cr_assert_eq(rv, 0);
}

static uint64_t got(struct rig *r, int32_t id)
{
    return rig_reply(r, id)->n_bytes;
}

static void finish(struct rig *r)
{
    cr_assert_eq(rig_run(r, 0), 0);
    for (unsigned i = 0; i < r->n_req; i++)
        cr_expect(r->req[i].complete, "%u", i);
    rig_free(r);
}

/* Downloads without a priority share, frame by frame. A client that waits for the second may have a
 * timer for it. */
Test(h2_send_scheduler, large_ones_take_turns)
{
    static const char *const paths[] = {"/2000000", "/2000000u", "/9000000"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(paths); i++) {
        struct rig *r = open_wide();
        int32_t a = get(r, paths[i], NULL), b = get(r, paths[i], NULL), c = get(r, paths[i], NULL);

        turns(r, 12);
        cr_expect(got(r, a) > 200000 && got(r, c) > 200000, "%s: %lu %lu %lu", paths[i], got(r, a),
                  got(r, b), got(r, c));
        cr_expect_leq(got(r, a), got(r, c) + 16384);
        cr_expect_leq(got(r, c), got(r, a) + 16384);
        cr_expect_leq(got(r, b), got(r, a) + 16384);
        finish(r);
    }
}

/* Small responses are useful only when they are complete: they are sent one after the other, before
 * large ones. */
Test(h2_send_scheduler, small_ones_do_not)
{
    struct rig *r = open_wide();
    int32_t large = get(r, "/2000000", NULL);

    turns(r, 3);
    uint64_t had = got(r, large);
    cr_expect_gt(had, 0);
    int32_t a = get(r, "/262144", NULL), b = get(r, "/262144", NULL);
    turns(r, 3);
    cr_expect_gt(got(r, a), 3 * ROOM / 2);
    cr_expect_eq(got(r, b), 0, "%lu", got(r, b));
    cr_expect_eq(got(r, large), had);
    finish(r);
}

/* The client's priority has precedence: in order of the ids unless the streams are incremental. An
 * empty value counts as a priority, too. */
Test(h2_send_scheduler, as_the_client_says)
{
    static const char *const values[] = {"u=3", "", "i=?0"};
    for (size_t i = 0; i < NJ_ARRAY_LEN(values); i++) {
        struct rig *r = open_wide();
        int32_t a = get(r, "/2000000", values[i]), b = get(r, "/2000000", values[i]);

        turns(r, 12);
        cr_expect(got(r, a) > 500000 && got(r, b) == 0, "%s: %lu %lu", values[i], got(r, a),
                  got(r, b));
        finish(r);
    }
    struct rig *r = open_wide();
    int32_t a = get(r, "/20000", "u=3, i"), b = get(r, "/200000", "i");
    r->room = 3 * 16384;
    turns(r, 2);
    cr_expect(got(r, a) > 0 && got(r, b) > 0, "%lu %lu", got(r, a), got(r, b));
    finish(r);
}

/* A more urgent large response is sent first, and a less urgent one last. */
Test(h2_send_scheduler, urgency_first)
{
    struct rig *r = open_wide();
    int32_t low = get(r, "/2000000", "u=4"), plain = get(r, "/2000000", NULL);
    int32_t high = get(r, "/2000000", "u=2");

    turns(r, 12);
    cr_expect(got(r, high) > 500000 && got(r, plain) == 0 && got(r, low) == 0);
    turns(r, 40);
    cr_expect(got(r, high) == 2000000 && got(r, plain) > 500000 && got(r, low) == 0, "%lu %lu %lu",
              got(r, high), got(r, plain), got(r, low));
    finish(r);
}

static void update(struct rig *r, uint32_t id, const char *value)
{
    uint8_t f[64] = {0, 0, (uint8_t)(4 + strlen(value)), 16};

    f[12] = (uint8_t)id;
    memcpy(f + 13, value, strlen(value));
    cr_assert_eq(nj_h2_input(r->h, f, 13 + strlen(value)), 0);
}

/* PRIORITY_UPDATE is a priority, too, at any time (RFC 9218 7.1). */
Test(h2_send_scheduler, updates)
{
    struct rig *r = open_wide();
    int32_t a = get(r, "/2000000", NULL), b = get(r, "/2000000", NULL);

    turns(r, 6);
    cr_expect(got(r, a) > 100000 && got(r, b) > 100000);
    update(r, (uint32_t)b, "u=3");
    uint64_t had = got(r, a);
    turns(r, 6);
    cr_expect(got(r, a) == had && got(r, b) > had + 200000, "%lu %lu", got(r, a), got(r, b));
    finish(r);

    r = open_wide();
    update(r, 3, "u=3"); /* of a request that is still to come */
    update(r, 5, "u=3");
    a = get(r, "/2000000", NULL);
    b = get(r, "/2000000", NULL);
    int32_t c = get(r, "/2000000", NULL);
    turns(r, 12);
    cr_expect(got(r, a) == 0 && got(r, b) > 500000 && got(r, c) == 0, "%lu %lu %lu", got(r, a),
              got(r, b), got(r, c));
    finish(r);
}
