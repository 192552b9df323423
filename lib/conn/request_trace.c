/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/request_trace.h"

#include <string.h>

#include "base/limits.h"
#include "base/page_alloc.h"
#include "base/request_head.h"
#include "conn/conn.h"
#include "conn/transfers_internal.h"

_Static_assert(NJ_TXNS_MAX >= NJ_TRACE_OPEN_MAX, "a request has a place");

/* What is added to a request until it ends. */
struct open {
    bool is_used;
    uint8_t last;     /* enum nj_why at the last look; NJ_N_WHYS: there was none */
    uint32_t place;   /* of the request in its shard */
    nj_ns sampled_at; /* the last look */
    struct nj_traced_request r;
};

struct nj_trace {
    struct nj_record_ring *ring;
    struct nj_net of;
    nj_ns next_at;              /* of the next look */
    uint32_t at;                /* the next of `open` to look at */
    uint32_t n_touched, n_free; /* of `open` */
    uint16_t free[NJ_TRACE_OPEN_MAX];
    uint16_t open_of[NJ_TXNS_MAX]; /* by place: index in `open` plus 1; 0: none */
    struct open open[NJ_TRACE_OPEN_MAX];
};

struct nj_trace *nj_trace_new(struct nj_record_ring *ring, const struct nj_net *of)
{
    struct nj_trace *trace = nj_pages_map(sizeof *trace, sizeof *trace); /* has paths of clients */

    if (trace) {
        memset(trace, 0, sizeof *trace); /* the lcore meets no page fault */
        trace->ring = ring;
        trace->of = *of;
    }
    return trace;
}

void nj_trace_free(struct nj_trace *trace)
{
    nj_pages_unmap(trace, sizeof *trace);
}

/* --- open requests ---------------------------------------------------------------------------- */

static bool is_wanted(const struct nj_trace *trace, const struct nj_txn *t)
{
    return nj_net_has(&trace->of, &t->client_addr) || nj_net_has(&trace->of, &t->remote);
}

static uint32_t place_of(const struct nj_conns *cs, const struct nj_txn *t)
{
    return nj_pool_index(&cs->txns.pool, t);
}

/* NULL: all are in use. */
static struct open *take(struct nj_trace *trace, uint32_t place)
{
    uint32_t i;

    if (trace->n_free > 0)
        i = trace->free[--trace->n_free];
    else if (trace->n_touched < NJ_TRACE_OPEN_MAX)
        i = trace->n_touched++;
    else
        return NULL;
    trace->open_of[place] = (uint16_t)(i + 1);
    memset(&trace->open[i], 0, sizeof trace->open[i]);
    trace->open[i].is_used = true;
    trace->open[i].place = place;
    trace->open[i].last = NJ_N_WHYS;
    return &trace->open[i];
}

static void put(struct nj_trace *trace, struct open *o)
{
    trace->open_of[o->place] = 0;
    o->is_used = false;
    trace->free[trace->n_free++] = (uint16_t)(o - trace->open);
}

static struct open *open_of(struct nj_trace *trace, uint32_t place)
{
    uint16_t i = trace->open_of[place];

    return i > 0 ? &trace->open[i - 1] : NULL;
}

/* What does not change before the request ends. Counts the request as lost if there is no room. */
static struct open *begin(struct nj_conns *cs, const struct nj_txn *t, nj_ns now)
{
    struct nj_trace *trace = cs->trace;
    const struct nj_conn *c = nj__conn_of(t);
    struct open *o = take(trace, place_of(cs, t));

    if (!o) {
        nj_record_ring_count_lost(trace->ring);
        return NULL;
    }
    o->sampled_at = now;
    o->r.arrived_at = t->arrived_at;
    o->r.client = t->client_addr;
    o->r.remote = t->remote;
    o->r.shard = (uint16_t)cs->cfg->number;
    o->r.is_h2 = c->state == NJ_CONN_H2;
    o->r.is_tls = c->is_tls;
    if (t->admitted)
        memcpy(o->r.class_of, nj_paced_class(&t->paced)->name, sizeof o->r.class_of);
    return o;
}

void nj__trace_request_begin(struct nj_conns *cs, struct nj_txn *t,
                             const struct nj_request_head *head)
{
    struct open *o = is_wanted(cs->trace, t) ? begin(cs, t, cs->now) : NULL;

    if (!o)
        return;
    struct nj_str path = nj__transfer_path_without_query(head->path);
    o->r.n_method = (uint8_t)nj_min_u32(head->method.n_bytes, sizeof o->r.method);
    o->r.n_path = (uint8_t)nj_min_u32(path.n_bytes, sizeof o->r.path);
    o->r.is_path_cut = o->r.n_path < path.n_bytes;
    if (o->r.n_method > 0)
        memcpy(o->r.method, head->method.p, o->r.n_method);
    if (o->r.n_path > 0)
        memcpy(o->r.path, path.p, o->r.n_path);
}

/* A request that ran before the trace began: of its head is known what a snapshot says. */
static void begin_running(struct nj_conns *cs, const struct nj_txn *t, nj_ns now)
{
    static const char *const method[] = {[NJ_METHOD_OTHER] = "",
                                         [NJ_METHOD_GET] = "GET",
                                         [NJ_METHOD_HEAD] = "HEAD",
                                         [NJ_METHOD_OPTIONS] = "OPTIONS"};
    struct nj_transfer known = {.n_path = 0};

    if (!is_wanted(cs->trace, t) || open_of(cs->trace, place_of(cs, t)))
        return;
    struct open *o = begin(cs, t, now);
    if (!o)
        return;
    nj__transfer_set_path(t, &known);
    o->r.n_path = known.n_path;
    o->r.is_path_cut = known.is_path_cut;
    memcpy(o->r.path, known.path, sizeof o->r.path);
    o->r.n_method = (uint8_t)strlen(method[t->method]);
    memcpy(o->r.method, method[t->method], o->r.n_method);
}

/* --- looks ------------------------------------------------------------------------------------ */

/* The time since the last look counts for the reason that holds now. */
static void look(struct nj_conns *cs, struct open *o, nj_ns now)
{
    const struct nj_txn *t = nj__transfer_running_at(cs, o->place);

    if (!t)
        return;
    o->last = (uint8_t)nj__transfer_why(t);
    o->r.waited[o->last] += now - o->sampled_at;
    o->sampled_at = now;
}

nj_ns nj__trace_sample(struct nj_conns *cs, nj_ns now)
{
    struct nj_trace *trace = cs->trace;

    if (now < trace->next_at)
        return trace->next_at;
    if (!nj_shape_is_migrated(cs->txns.shape)) /* soon */
        return trace->next_at = now;
    for (uint32_t n = 0; n < NJ_TRANSFERS_SLICE && trace->at < trace->n_touched; n++) {
        struct open *o = &trace->open[trace->at++];
        if (o->is_used)
            look(cs, o, now);
    }
    if (trace->at >= trace->n_touched) {
        trace->at = 0;
        trace->next_at = now + NJ_TRACE_PERIOD;
    }
    return trace->next_at;
}

nj_ns nj__trace_next_at(const struct nj_trace *trace)
{
    return trace->next_at;
}

/* --- records ---------------------------------------------------------------------------------- */

/* A request that ended before the first look has no times by reason. */
static void finish(struct nj_trace *trace, struct open *o, const struct nj_txn *t, nj_ns now)
{
    nj_ns first = t->admitted ? t->paced.first_byte_at : 0;

    if (o->last != NJ_N_WHYS)
        o->r.waited[o->last] += now - o->sampled_at;
    o->r.ended_at = now;
    o->r.first_byte_at = first ? first : t->head_sent_at;
    o->r.status = t->status;
    o->r.n_bytes = t->admitted ? t->paced.n_bytes : 0;
    o->r.throttled = t->admitted ? t->paced.throttled_ns : 0;
    void *to = nj_record_ring_add(trace->ring, sizeof o->r);
    if (to) {
        memcpy(to, &o->r, sizeof o->r);
        nj_record_ring_publish(trace->ring, nj_record_ring_at(trace->ring));
    } else {
        nj_record_ring_count_lost(trace->ring);
    }
    put(trace, o);
}

void nj__trace_request_end(struct nj_conns *cs, struct nj_txn *t, bool complete)
{
    struct open *o = open_of(cs->trace, place_of(cs, t));

    if (!o)
        return;
    o->r.is_complete = complete;
    finish(cs->trace, o, t, cs->now);
}

/* --- the command ------------------------------------------------------------------------------ */

static bool run_begin(struct nj_conns *cs, struct nj_trace_command *c, nj_ns now)
{
    cs->trace = c->trace;
    cs->timeouts_at = 0; /* nj__trace_sample() is called there */
    for (uint32_t n = 0; n < NJ_TRANSFERS_SLICE; n++) {
        if (c->at >= cs->txns.pool.n_touched)
            return true;
        const struct nj_txn *t = nj__transfer_running_at(cs, c->at++);
        if (t)
            begin_running(cs, t, now);
    }
    return false;
}

static bool run_end(struct nj_conns *cs, struct nj_trace_command *c, nj_ns now)
{
    for (uint32_t n = 0; n < NJ_TRANSFERS_SLICE && c->at < c->trace->n_touched; n++) {
        struct open *o = &c->trace->open[c->at++];
        if (!o->is_used)
            continue;
        o->r.is_running = true;
        finish(c->trace, o, nj_pool_at(&cs->txns.pool, o->place), now);
    }
    if (c->at < c->trace->n_touched)
        return false;
    cs->trace = NULL;
    return true;
}

static bool run(struct nj_command *command, void *conns, nj_ns now)
{
    struct nj_trace_command *c = nj_container_of(command, struct nj_trace_command, command);
    struct nj_conns *cs = conns;

    if (!nj_shape_is_migrated(cs->txns.shape)) /* soon */
        return false;
    if (!c->ends)
        return run_begin(cs, c, now);
    return nj_command_is_done(&c->ends->command) && run_end(cs, c, now);
}

void nj_trace_begin(struct nj_trace_command *c)
{
    c->command.run = run;
    c->at = 0;
}
