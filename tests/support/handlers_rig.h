/* SPDX-License-Identifier: BSD-3-Clause */
/* * A shard with routes (shard_rig.h), and clients that speak HTTP/2 to it by nghttp2. Only
 * hr_step() and its callers send and step, and only the test advances the time. */
#pragma once

#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdio.h>

#include "dpdk/fd_waits.h"
#include "http/handlers/exchange_state.h"
#include "http/handlers/route_table.h"
#include "sched/worker_wait.h"
#include "support/shard_rig.h"

#define HR_CLIENTS   120
#define HR_STREAMS   256u
#define HR_BODY_KEEP 4096u
#define HR_JOBS_MAX  64u
#define HR_OUT       65536u
#define HR_CLASS     "own"

/* One request of a client, and its response. */
struct hr_reply {
    uint64_t n_send, n_sent; /* of the request's body */
    uint64_t may_send;       /* the bytes of it that may be sent now */
    bool no_end;             /* the body is not ended */
    int status;
    bool closed, ended; /* ended: with END_STREAM */
    uint32_t error;     /* of RST_STREAM */
    unsigned n_heads, n_datas;
    uint64_t n_got;
    bool wrong; /* a byte was not rig_byte() of its place */
    char length[24], allow[64], retry_after[8], trailer[32], x[64], date[32], server[16];
    char type[64];           /* content-type, the last */
    unsigned n_types;        /* of such fields */
    char body[HR_BODY_KEEP]; /* the first of it, terminated */
};

struct hr_client {
    struct rig *r;
    struct rig_peer *p;
    nghttp2_session *s;
    uint8_t out[HR_OUT]; /* nghttp2's output, as far as the shard's receive window allows */
    uint32_t n_out;
    bool goaway;
    uint32_t n_windows;                /* WINDOW_UPDATEs that came for the connection */
    unsigned n_pings;                  /* PINGs of the server that were acknowledged */
    unsigned n_asked;                  /* PINGs of the server */
    struct hr_reply reply[HR_STREAMS]; /* by stream id / 2 */
};

struct hr {
    struct rig *r;
    struct nj_routes *routes;
    struct nj_shard_config config;
    uint32_t n_clients;
    struct hr_client *client[HR_CLIENTS];
    /* Workers: tasks run on a thread when they are polled for. */
    uint32_t n_jobs, n_flushed, jobs_max; /* no worker sees a task before it was flushed */
    bool workers_slow, workers_stopped;
    struct nj_task *job[HR_JOBS_MAX];
    nj_ns clock;                 /* the value of the measuring clock */
    struct nj_fd_waits fd_waits; /* real descriptors, which are looked at before each step */
    struct nj_wakeup waker;      /* it never sleeps */
    char log[256];
};

/* ---- workers ---- */

static inline bool hr_submit(void *ctx, struct nj_task *task)
{
    struct hr *h = ctx;
    if (h->n_jobs >= h->jobs_max)
        return false;
    h->job[h->n_jobs++] = task;
    return true;
}

static inline void hr_flush_workers(void *ctx)
{
    struct hr *h = ctx;
    h->n_flushed = h->n_jobs;
}

static inline void *hr_worker(void *task)
{
    struct nj_task *t = task;
    struct nj_worker_wait wait = {0};

    NJ_CHECK(nj_worker_wait_open(&wait));
    nj_worker_wait_bind(&wait);
    nj_worker_wait_begin_task(t);
    t->ops->run(t);
    nj_worker_wait_end_task(t);
    nj_worker_wait_close(&wait);
    t->run_ns = 1000;
    return NULL;
}

static inline uint32_t hr_poll(void *ctx, struct nj_task **tasks, uint32_t n)
{
    struct hr *h = ctx;
    uint32_t got = h->workers_slow ? 0 : h->n_flushed < n ? h->n_flushed : n;

    while (h->workers_stopped && h->n_jobs > 0) {
        struct nj_task *t = h->job[--h->n_jobs];
        t->ops->reject(t);
        got = h->n_flushed = 0;
    }

    const struct nj_exchanges *set = h->r->s->conns.handlers.exchanges;
    uint32_t n_blocks = nj_block_pool_in_use(set->blocks),
             n_bodies = nj_block_pool_in_use(set->bodies);
    for (uint32_t i = 0; i < got; i++) {
        pthread_t thread;
        NJ_CHECK(pthread_create(&thread, NULL, hr_worker, h->job[i]) == 0);
        pthread_join(thread, NULL);
        tasks[i] = h->job[i];
    }
    /* EWYK 5.59: the pools are the lcore's. */
    NJ_CHECK(n_blocks == nj_block_pool_in_use(set->blocks) &&
             n_bodies == nj_block_pool_in_use(set->bodies));
    h->n_jobs -= got;
    h->n_flushed -= got;
    memmove(h->job, h->job + got, h->n_jobs * sizeof h->job[0]);
    return got;
}

/* The rig is the port's context; where the handlers' rig is, only one at a time can be. */
static struct hr *hr_here;

static inline nj_ns hr_clock(void *ctx)
{
    return hr_here->clock;
}

static inline void hr_log(void *ctx, const char *line)
{
    snprintf(hr_here->log, sizeof hr_here->log, "%s", line);
}

/* ---- life ---- */

/* The shard is not created yet: config may be changed before hr_start(). */
static inline struct hr *hr_new(const struct nj_route *routes, uint32_t n)
{
    char why[256];
    struct hr *h = calloc(1, sizeof *h);

    h->r = rig_alloc(16384, 16384);
    h->config = rig_config(h->r);
    h->routes = nj_routes_new(routes, n, why, sizeof why);
    NJ_CHECK(h->routes);
    h->config.conns.routes = h->routes;
    h->jobs_max = HR_JOBS_MAX;
    h->config.conns.ops.workers = (struct nj_worker_ops){
        .ctx = h, .submit = hr_submit, .flush = hr_flush_workers, .poll = hr_poll};
    NJ_CHECK(nj_fd_waits_open(&h->fd_waits, &h->waker));
    h->config.conns.ops.waits = nj_fd_waits_ops(&h->fd_waits);
    h->config.conns.ops.clock = hr_clock;
    h->config.conns.ops.log = hr_log;
    hr_here = h;
    return h;
}

/* A policy of two classes without limits: "default", and HR_CLASS, which responses may join. */
static inline void hr_two_classes(struct hr *h, struct nj_policy *policy)
{
    *policy = (struct nj_policy){.version = 1,
                                 .n_classes = 2,
                                 .classes = {{.name = "default"}, {.name = HR_CLASS, .slot = 1}},
                                 .client_bits4 = 32,
                                 .client_bits6 = 64};
    h->config.conns.policy = policy;
}

static inline struct hr *hr_start(struct hr *h)
{
    rig_new_with(h->r, &h->config);
    return h;
}

static inline void hr_free(struct hr *h)
{
    h->workers_slow = false;
    rig_free(h->r);
    nj_fd_waits_close(&h->fd_waits);
    nj_routes_free(h->routes);
    for (uint32_t i = 0; i < h->n_clients; i++) {
        nghttp2_session_del(h->client[i]->s);
        free(h->client[i]);
    }
    free(h);
}

/* ---- input of a client ---- */

static inline struct hr_reply *hr_reply_of(struct hr_client *c, int32_t id)
{
    NJ_CHECK((uint32_t)id / 2 < HR_STREAMS);
    return &c->reply[id / 2];
}

static inline void hr_keep(char *out, size_t n_out, const uint8_t *value, size_t n)
{
    snprintf(out, n_out, "%.*s", (int)n, (const char *)value);
}

static inline int hr_on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name,
                               size_t n_name, const uint8_t *value, size_t n, uint8_t flags,
                               void *user)
{
    struct hr_reply *a = hr_reply_of(user, f->hd.stream_id);
    char key[32];

    hr_keep(key, sizeof key, name, n_name);
    if (!strcmp(key, ":status"))
        a->status = atoi((const char *)value);
    if (!strcmp(key, "content-length"))
        hr_keep(a->length, sizeof a->length, value, n);
    if (!strcmp(key, "allow"))
        hr_keep(a->allow, sizeof a->allow, value, n);
    if (!strcmp(key, "retry-after"))
        hr_keep(a->retry_after, sizeof a->retry_after, value, n);
    if (!strcmp(key, "trailer-x"))
        hr_keep(a->trailer, sizeof a->trailer, value, n);
    if (!strcmp(key, "date"))
        hr_keep(a->date, sizeof a->date, value, n);
    if (!strcmp(key, "server"))
        hr_keep(a->server, sizeof a->server, value, n);
    if (!strcmp(key, "content-type")) {
        hr_keep(a->type, sizeof a->type, value, n);
        a->n_types++;
    }
    if (!strcmp(key, "x"))
        hr_keep(a->x, sizeof a->x, value, n);
    return 0;
}

static inline int hr_on_frame(nghttp2_session *s, const nghttp2_frame *f, void *user)
{
    struct hr_client *c = user;

    if (f->hd.type == NGHTTP2_GOAWAY)
        c->goaway = true;
    if (f->hd.type == NGHTTP2_PING && f->hd.flags & NGHTTP2_FLAG_ACK)
        c->n_pings++;
    if (f->hd.type == NGHTTP2_PING && !(f->hd.flags & NGHTTP2_FLAG_ACK))
        c->n_asked++;
    if (f->hd.type == NGHTTP2_WINDOW_UPDATE && f->hd.stream_id == 0)
        c->n_windows++;
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA)
        return 0;
    struct hr_reply *a = hr_reply_of(c, f->hd.stream_id);
    a->n_heads += f->hd.type == NGHTTP2_HEADERS;
    a->n_datas += f->hd.type == NGHTTP2_DATA;
    a->ended |= f->hd.flags & NGHTTP2_FLAG_END_STREAM;
    return 0;
}

static inline int hr_on_data(nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data,
                             size_t n, void *user)
{
    struct hr_reply *a = hr_reply_of(user, id);

    for (size_t i = 0; i < n; i++, a->n_got++) {
        if (a->n_got < HR_BODY_KEEP - 1)
            a->body[a->n_got] = (char)data[i];
        a->wrong |= data[i] != rig_byte(a->n_got);
    }
    return 0;
}

static inline int hr_on_close(nghttp2_session *s, int32_t id, uint32_t error, void *user)
{
    struct hr_reply *a = hr_reply_of(user, id);
    a->closed = true;
    a->error = error;
    return 0;
}

/* ---- clients ---- */

struct hr_options {
    uint32_t window;      /* of streams; 0: 65535 */
    bool no_auto;         /* windows are not opened again by themselves */
    uint32_t session_add; /* to the session's window at once */
};

static inline struct hr_client *hr_connect_from(struct hr *h, uint32_t ip,
                                                const struct hr_options *o)
{
    struct hr_client *c = calloc(1, sizeof *c);
    nghttp2_session_callbacks *cb;
    nghttp2_option *option;

    NJ_CHECK(h->n_clients < HR_CLIENTS);
    c->r = h->r;
    c->p = rig_syn_from(h->r, ip, (uint16_t)(2000 + h->n_clients));
    rig_settle(h->r);
    NJ_CHECK(nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_header_callback(cb, hr_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(cb, hr_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, hr_on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(cb, hr_on_close);
    nghttp2_option_set_no_auto_window_update(option, o->no_auto);
    NJ_CHECK(nghttp2_session_client_new2(&c->s, cb, c, option) == 0);
    nghttp2_session_callbacks_del(cb);
    nghttp2_option_del(option);
    nghttp2_settings_entry e = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
                                o->window ? o->window : 65535};
    NJ_CHECK(nghttp2_submit_settings(c->s, 0, &e, 1) == 0);
    if (o->session_add)
        nghttp2_submit_window_update(c->s, 0, 0, (int32_t)o->session_add);
    h->client[h->n_clients++] = c;
    return c;
}

static inline struct hr_client *hr_connect_with(struct hr *h, const struct hr_options *o)
{
    return hr_connect_from(h, RIG_PEER_IP, o);
}

/* Collect nghttp2's frames, one behind the other. */
static inline void hr_gather(struct hr_client *c)
{
    const uint8_t *data;
    ssize_t n;

    while (c->n_out < HR_OUT / 2 && (n = nghttp2_session_mem_send(c->s, &data)) > 0) {
        NJ_CHECK(c->n_out + (size_t)n <= HR_OUT);
        memcpy(c->out + c->n_out, data, (size_t)n);
        c->n_out += (uint32_t)n;
    }
}

/* Send the client's output, in segments. */
static inline bool hr_flush(struct hr_client *c)
{
    struct rig_peer *p = c->p;
    bool any = false;

    while (!p->got_rst && !p->got_fin) {
        uint32_t flying = p->snd_nxt - p->snd_una;
        uint32_t room = flying < p->srv_wnd ? p->srv_wnd - flying : 0;
        hr_gather(c);
        uint32_t n = c->n_out < 1400 ? c->n_out : 1400;
        if (n == 0 || n > room)
            break;
        NJ_CHECK(rig_send(c->r, p, c->out, n));
        c->n_out -= n;
        memmove(c->out, c->out + n, c->n_out);
        any = true;
    }
    return any;
}

static inline void hr_feed(struct hr_client *c)
{
    struct rig_peer *p = c->p;
    NJ_CHECK(p->n_got < RIG_GOT_MAX);
    if (p->n_got > 0)
        NJ_CHECK(nghttp2_session_mem_recv(c->s, p->got, p->n_got) == (ssize_t)p->n_got);
    p->n_got = 0;
}

/* Send the clients' output, run one step, and deliver their input. False: nothing happened. */
static inline bool hr_step(struct hr *h)
{
    bool any = h->r->n_in > 0;

    for (uint32_t i = 0; i < h->n_clients; i++)
        any |= hr_flush(h->client[i]);
    for (uint32_t i = 0; i < RIG_PEERS; i++)
        any |= h->r->peer[i].used && h->r->peer[i].ack_due && !h->r->peer[i].manual;
    if (h->fd_waits.n > 0)
        nj__fd_waits_collect(&h->fd_waits, h->r->now);
    any |= rig_step(h->r) > 0;
    for (uint32_t i = 0; i < h->n_clients; i++)
        hr_feed(h->client[i]);
    return any;
}

/* Step until nothing happens, without time passing. */
static inline void hr_settle(struct hr *h)
{
    for (uint32_t i = 0; i < 20000; i++)
        if (!hr_step(h) && h->r->n_in == 0 && nj_shard_next_at(h->r->s) > h->r->now)
            return;
    NJ_UNREACHABLE("it does not come to rest");
}

static inline void hr_run(struct hr *h, nj_ns dt)
{
    nj_ns end = h->r->now + dt;

    hr_settle(h);
    while (h->r->now < end) {
        nj_ns left = end - h->r->now;
        h->r->now += left < 5 * NJ_MS ? left : 5 * NJ_MS;
        hr_settle(h);
    }
}

static inline struct hr_client *hr_connect(struct hr *h)
{
    static const struct hr_options wide = {.window = 1u << 30, .session_add = 1u << 30};
    struct hr_client *c = hr_connect_with(h, &wide);
    hr_settle(h);
    return c;
}

/* ---- requests ---- */

static inline ssize_t hr_read_body(nghttp2_session *s, int32_t id, uint8_t *buf, size_t n,
                                   uint32_t *flags, nghttp2_data_source *src, void *user)
{
    struct hr_reply *a = src->ptr;
    uint64_t left = (a->may_send < a->n_send ? a->may_send : a->n_send) - a->n_sent;

    if (left == 0 && (a->n_sent < a->n_send || a->no_end))
        return NGHTTP2_ERR_DEFERRED;
    n = n < left ? n : left;
    for (size_t i = 0; i < n; i++)
        buf[i] = rig_byte(a->n_sent++);
    if (a->n_sent == a->n_send && !a->no_end)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

#define HR_NV(n, v)                                                                                \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), strlen(n), strlen(v), 0              \
    }

/* A request with a body of `n_body` bytes, of which `may_send` go out by themselves; and one field
 * if `name`. Returns the stream. */
static inline int32_t hr_ask(struct hr_client *c, const char *method, const char *path,
                             uint64_t n_body, uint64_t may_send, const char *name,
                             const char *value)
{
    nghttp2_nv nv[] = {HR_NV(":method", method), HR_NV(":scheme", "http"),
                       HR_NV(":authority", "198.18.0.2"), HR_NV(":path", path),
                       HR_NV(name ? name : "x", name ? value : "")};
    int32_t id = (int32_t)nghttp2_session_get_next_stream_id(c->s);
    struct hr_reply *a = hr_reply_of(c, id);
    nghttp2_data_provider body = {.source.ptr = a, .read_callback = hr_read_body};

    *a = (struct hr_reply){.n_send = n_body, .may_send = may_send};
    NJ_CHECK(nghttp2_submit_request(c->s, NULL, nv, name ? 5 : 4, n_body ? &body : NULL, NULL) ==
             id);
    return id;
}

/* A request with exactly these fields. Returns the stream. */
static inline int32_t hr_ask_fields(struct hr_client *c, const nghttp2_nv *nv, size_t n)
{
    int32_t id = (int32_t)nghttp2_session_get_next_stream_id(c->s);

    *hr_reply_of(c, id) = (struct hr_reply){0};
    NJ_CHECK(nghttp2_submit_request(c->s, NULL, nv, n, NULL, NULL) == id);
    return id;
}

static inline int32_t hr_get(struct hr_client *c, const char *path)
{
    return hr_ask(c, "GET", path, 0, 0, NULL, NULL);
}

static inline int32_t hr_post(struct hr_client *c, const char *path, uint64_t n)
{
    return hr_ask(c, "POST", path, n, n, NULL, NULL);
}

/* More of a body may go. */
static inline void hr_send_more(struct hr_client *c, int32_t id, uint64_t n)
{
    hr_reply_of(c, id)->may_send += n;
    nghttp2_session_resume_data(c->s, id);
}

static inline void hr_reset(struct hr_client *c, int32_t id)
{
    NJ_CHECK(nghttp2_submit_rst_stream(c->s, 0, id, NGHTTP2_CANCEL) == 0);
}

static inline const struct nj_task_class *hr_class(const struct hr *h, uint32_t route)
{
    return &h->r->s->conns.handlers.classes[route];
}
