/* SPDX-License-Identifier: BSD-3-Clause */
/* A site over a lane over workers: what requests of several clients get, and when. */
#include "http/site.h"
#include "lane_rig.h"
#include "telem/counters.h"

TestSuite(server_file_site, .init = start_stuck, .fini = scratch_remove, .timeout = 60);

struct reply {
    const char *to; /* what the stream was given as */
    uint16_t status;
    struct nj_body *body;
};

struct world {
    struct bench b;
    struct shard sh;
    struct nj_counters counters;
    struct nj_site *site;
    struct reply said[64];
    uint32_t n_said;
};

static struct world world;

static void on_reply(void *ctx, void *stream, const struct nj_http_reply *reply)
{
    struct world *w = ctx;

    cr_assert_lt(w->n_said, NJ_ARRAY_LEN(w->said));
    w->said[w->n_said++] = (struct reply){stream, reply->status, reply->body};
}

static void on_wake(void *ctx, void *waiter)
{
    (void)ctx;
    (void)waiter;
}

static struct world *begin_site(void)
{
    static const struct nj_site_events events = {.on_reply = on_reply, .on_wake = on_wake};
    struct world *w = &world;
    struct nj_site_config config = {
        .events = &events,
        .events_ctx = w,
        .files = &w->sh.port,
        .counters = &w->counters,
        .wall_s_at_zero = 784111777,
        .exchanges_max = 64,
    };

    memset(w, 0, sizeof *w);
    begin(&w->b, 64 * MIB);
    begin_shard(&w->sh, &w->b);
    w->site = nj_site_new(&config);
    cr_assert_not_null(w->site);
    return w;
}

static void end_site(struct world *w)
{
    cr_expect_eq(nj_site_jobs_out(w->site), 0);
    nj_site_free(w->site);
    end(&w->b);
}

/* The client is told apart by the first letter of its name. */
static struct nj_site_wait *get(struct world *w, const char *who, const char *path)
{
    static char client[128];
    struct nj_str p = {path, (uint32_t)strlen(path)};
    struct nj_target target;

    nj_site_target(w->site, p, &target);
    struct nj_http_request req = {
        .method = NJ_STR("GET"), .path = p, .target = &target, .client = &client[(int)*who]};
    return nj_site_request(w->site, &req, (void *)(uintptr_t)who, NJ_SEC);
}

/* A shard's step, as far as files go. */
static void poll_site(struct world *w)
{
    struct nj_file_job *jobs[4];
    uint32_t n = w->sh.port.poll(w->sh.port.ctx, jobs, NJ_ARRAY_LEN(jobs));

    for (uint32_t i = 0; i < n; i++)
        nj_site_file_done(w->site, jobs[i], NJ_SEC);
    nj_site_polled(w->site);
}

static int show(struct nj_body *body)
{
    struct nj_slice s;
    return body->ops->peek(body, 1000, &s);
}

/* The port has room for one. Its READ is kept, as another thread reads the same: then it has room
 * again, though nothing came back. */
Test(server_file_site, a_body_that_was_refused)
{
    struct world *w = begin_site();
    nj_ref_put(&open_large(&w->b, "one")->ref);
    nj_ref_put(&open_large(&w->b, "two")->ref);
    wait_for_tick(&w->b, "one");
    wait_for_tick(&w->b, "two");
    cr_assert_eq(open_job(&w->b, "one"), NJ_FILE_OK);
    struct nj_object *o = w->b.job.object;
    struct other other = {.job = read_of(o, 0)};
    begin_other(&other, &w->b, "pread", false);
    get(w, "a", "/one");
    get(w, "b", "/two");
    for (int i = 0; i < 8; i++)
        poll_site(w);
    cr_assert_eq(w->n_said, 2);
    struct nj_body *one = w->said[0].body, *two = w->said[1].body;
    if (*w->said[0].to == 'b')
        one = w->said[1].body, two = w->said[0].body;

    w->sh.direct.by_hand = true;
    cr_assert_eq(show(one), 0);
    w->sh.direct.is_full = true;
    cr_assert_eq(show(two), 0);
    w->sh.direct.is_full = false;
    for (int i = 0; i < 8; i++)
        poll_site(w);
    cr_expect_eq(w->sh.direct.n_in, 1, "nobody asks while it is full");
    direct_run_next(&w->sh.direct);
    poll_site(w);
    cr_expect_not_null(w->sh.lane.busy.first);
    cr_assert_eq(w->sh.direct.n_in, 1);
    direct_run_next(&w->sh.direct);
    poll_site(w);
    cr_expect_gt(show(two), 0);

    w->sh.direct.by_hand = false;
    cr_expect_eq(end_other(&other, false), NJ_FILE_OK);
    for (int i = 0; i < 8; i++)
        poll_site(w);
    cr_expect_gt(show(one), 0);
    one->ops->close(one);
    two->ops->close(two);
    put(other.job.chunk);
    nj_ref_put(&o->ref);
    end_site(w);
}
