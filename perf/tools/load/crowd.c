/* SPDX-License-Identifier: BSD-3-Clause */
#include "crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/relaxed_atomics.h"
#include "transport.h"

#define OPENING_MAX 1024u /* handshakes at a time: a quarter of a server's backlog */
#define OUT_BYTES   (256u * 1024u)
#define OUT_PART    (64u * 1024u) /* of one connection at a time */
#define ASKS_MAX    64u /* due requests in one step, so that responses are processed in between */
#define RETRY_AFTER (100 * NJ_MS) /* when a connection was refused */
#define SWEEP_EVERY (10 * NJ_MS)
#define KEPT_MAX                                                                                   \
    (1u << 20) /* kept bytes of a connection: above, the peer requires more replies than it reads  \
                */
#define SWEEPS 100u /* between two checks of all connections */

/* ---- requests ---- */

static void ended(void *user, const struct load_request *r, enum load_end end, nj_ns now)
{
    struct client *k = user;
    struct crowd *c = k->crowd;
    struct load_counts *n = &c->counts;
    _Atomic uint64_t *const how[LOAD_N_ENDS] = {&n->done, &n->reset, &n->timeout, &n->lost};
    _Atomic uint64_t *const class_of[] = {&n->status_1, &n->status_2, &n->status_3, &n->status_4,
                                          &n->status_5};

    nj_add_single_writer(&c->n_under_way, -1);
    nj_add_single_writer(how[end], 1);
    if (end != LOAD_DONE)
        return;
    if (r->status < 600)
        nj_add_single_writer(class_of[r->status / 100 - 1], 1);
    if (r->due < c->measure_from || r->due >= c->measure_to)
        return;
    fine_histogram_add(&c->total, now - r->due);
    fine_histogram_add(&c->first, r->first_at - r->due);
}

static void came(void *user, uint32_t n_bytes)
{
    struct client *k = user;
    nj_add_single_writer(&k->crowd->counts.body_bytes, n_bytes);
}

static uint32_t choose_path(struct crowd *c)
{
    const struct load_options *o = c->o;
    uint32_t path = 0;

    if (o->plan.n_paths == 1)
        return 0;
    if (o->in_turn)
        return c->next_path++ % o->plan.n_paths;
    for (uint64_t at = nj_prng_below(&c->prng, o->weights); at >= o->weight[path]; path++)
        at -= o->weight[path];
    return path;
}

static void ask(struct client *k, nj_ns due)
{
    struct crowd *c = k->crowd;

    c->plan.framing->ask(&k->conn, choose_path(c), due, &c->out);
    c->budget -= c->budget != UINT64_MAX;
    nj_add_single_writer(&c->n_under_way,
                         1); /* before: a reader of the second count also sees the first */
    nj_add_single_writer(&c->counts.asked, 1);
}

static bool asking(const struct crowd *c)
{
    return (c->phase == LOAD_WARMING || c->phase == LOAD_MEASURING) && c->budget > 0;
}

/* ---- bytes ---- */

static void drop_out(struct crowd *c)
{
    c->out.n_bytes = 0;
    c->out.full = false;
}

/* Ends the connection for another reason than bytes of the server. */
static void end_for(struct client *k, const char *fault)
{
    k->conn.fault = fault;
    k->crowd->net->abort(k, k->crowd->now);
}

/* Passes bytes to the transport. Keeps those that it does not accept, to preserve the order. */
static void send_bytes(struct client *k, const uint8_t *data, uint32_t n)
{
    struct crowd *c = k->crowd;
    uint32_t n_sent = k->n_kept == 0 ? c->net->send(k, data, n) : 0;

    if (n_sent == n)
        return;
    n -= n_sent;
    uint8_t *kept = k->n_kept < KEPT_MAX ? realloc(k->kept, (size_t)k->n_kept + n) : NULL;
    if (!kept) {
        end_for(k, "the server wants more replies than it reads, or there is no memory");
        return;
    }
    memcpy(kept + k->n_kept, data + n_sent, n);
    k->kept = kept;
    k->n_kept += n;
    if (!nj_list_linked(&k->behind))
        nj_list_push_back(&c->behind, &k->behind);
}

/* Sends c->out, in records if the connection has TLS. */
static void send_out(struct client *k)
{
    struct crowd *c = k->crowd;
    const uint8_t *data = c->out.data;
    uint32_t n = c->out.n_bytes;

    drop_out(c);
    if (n == 0 || !k->attached || k->closing)
        return;
    if (k->tls) {
        n = load_tls_seal(k->tls, data, n, c->sealed);
        data = c->sealed;
    }
    if (n > 0)
        send_bytes(k, data, n);
    else
        end_for(k, "the key of TLS is used up");
}

/* Sends kept bytes. Returns their number. */
static uint32_t catch_up(struct client *k)
{
    uint32_t n = k->crowd->net->send(k, k->kept, k->n_kept);

    k->n_kept -= n;
    memmove(k->kept, k->kept + n, k->n_kept);
    return n;
}

/* Whether connections take turns. Otherwise each sends a request after each response. */
static bool in_turn(const struct crowd *c)
{
    return c->interval_ns > 0 || c->in_flight > 0;
}

static bool usable(const struct client *k)
{
    return k->open && !k->closing && !k->conn.fault;
}

static uint32_t room(const struct client *k)
{
    return k->crowd->plan.framing->room(&k->conn);
}

/* Sends as many requests as may be in flight, in portions that fit in `out`. */
static void ask_all(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;

    while (asking(c) && room(k) > 0 && k->n_kept == 0) {
        if (c->out.n_max - c->out.n_bytes < c->plan.request_max)
            send_out(k);
        else
            ask(k, now);
    }
}

/* Continues the bodies of requests. Returns the bytes of them. */
static uint64_t upload(struct client *k)
{
    struct crowd *c = k->crowd;
    uint32_t n_free = c->net->room(k);
    uint64_t n = 0;

    c->out.n_max = n_free < OUT_PART ? n_free : OUT_PART;
    if (c->out.n_bytes < c->out.n_max)
        n = c->plan.framing->upload(&k->conn, &c->out);
    nj_add_single_writer(&c->counts.upload_bytes, n);
    c->out.n_max = OUT_BYTES;
    return n;
}

/* Sends all requests and bodies that this connection may send now. */
static void go_on(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;

    do { /* in HTTP/1.1 the end of a body makes room for the next request */
        if (usable(k) && !in_turn(c))
            ask_all(k, now);
    } while (usable(k) && k->n_kept == 0 && upload(k) > 0);
    send_out(k);
    if (in_turn(c) && k->open)
        nj_list_del(&k->link);
    if (in_turn(c) && usable(k) && room(k) > 0)
        nj_list_push_back(&c->free, &k->link);
}

/* ---- connections ---- */

/* The count of connections that ended as this one did. */
static _Atomic uint64_t *loss(const struct client *k)
{
    struct load_counts *n = &k->crowd->counts;

    if (k->open)
        return k->conn.fault ? &n->broken : &n->cut;
    if (k->tls)
        return &n->tls_failed;
    return k->error == 0 || k->error == ECONNREFUSED ? &n->refused : &n->unreachable;
}

static void gone(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;
    const char *fault = k->conn.fault ? k->conn.fault : k->error ? strerrordesc_np(k->error) : NULL;

    nj_add_single_writer(&c->n_open, -(int32_t)k->open);
    c->n_opening -= !k->open;
    if (!k->conn.settled)
        c->retry_at = now + RETRY_AFTER;
    if (nj_load_relaxed(&c->counts.connected) == 0)
        c->to_next = (c->to_next + 1) % c->o->n_to;
    if (fault && c->phase < LOAD_CLOSING)
        nj_store_relaxed(&c->fault, fault);
    if (!k->closing && c->phase < LOAD_CLOSING)
        nj_add_single_writer(loss(k), 1);
    c->plan.framing->close(&k->conn, now);
    nj_list_del(&k->link);
    nj_list_del(&k->behind);
    free(k->kept);
    k->kept = NULL;
    k->n_kept = 0;
    load_tls_close(k->tls);
    k->tls = NULL;
    k->error = 0;
    k->attached = k->open = k->closing = false;
    nj_list_push_back(&c->opening, &k->link);
}

/* The connection can carry requests. False: there is no memory for it. */
static bool opened(struct client *k)
{
    struct crowd *c = k->crowd;

    c->n_opening--;
    k->open = true;
    nj_add_single_writer(&c->n_open, 1);
    nj_add_single_writer(&c->counts.connected, 1);
    if (c->plan.framing->open(&k->conn, &c->plan, k, &c->out))
        return true;
    end_for(k, "out of memory");
    return false;
}

static void send_handshake(struct client *k)
{
    const uint8_t *data;
    uint32_t n = load_tls_output(k->tls, &data);

    if (n > 0)
        send_bytes(k, data, n);
}

/* The transport is connected. False: the connection was reset. */
static bool connected(struct client *k)
{
    struct crowd *c = k->crowd;

    if (!c->tls)
        return opened(k);
    k->tls = load_tls_open(c->tls);
    if (k->tls) {
        send_handshake(k);
        return true;
    }
    end_for(k, "out of memory");
    return false;
}

/* The connection is not used any more: at the end by this client, before that by the peer. */
static void close_one(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;
    bool at_end = c->phase == LOAD_CLOSING;

    send_out(k);
    if (k->closing)
        return;
    k->closing = true;
    if (!at_end)
        nj_add_single_writer(k->open ? &c->counts.closed : &c->counts.tls_failed, 1);
    if (!at_end && !k->open)
        nj_store_relaxed(&c->fault, "the server closes in the handshake of TLS");
    c->net->close(k, now);
}

static bool read_record(struct client *k, const struct nj_tls_src *src, uint32_t n_src,
                        uint32_t n_bytes, nj_ns now)
{
    struct crowd *c = k->crowd;
    const uint8_t *data;
    int n;

    if (load_tls_is_established(k->tls)) {
        n = load_tls_read(k->tls, src, n_src, &data);
        c->net->take(k, n_bytes);
        return n >= 0 &&
               (n == 0 || c->plan.framing->input(&k->conn, data, (uint32_t)n, now, &c->out));
    }
    bool good = load_tls_handshake(k->tls, src, n_src);
    c->net->take(k, n_bytes);
    if (good)
        send_handshake(k);
    return good && (!load_tls_is_established(k->tls) || opened(k));
}

/* Its bytes; -1: it is not valid; 0: the header has not arrived. */
static int record_size(const struct client *k)
{
    struct nj_tls_src src[NJ_TLS_HEADER_BYTES];
    uint8_t head[NJ_TLS_HEADER_BYTES];
    uint32_t n_src = k->crowd->net->peek(k, sizeof head, src, NJ_ARRAY_LEN(src)), n = 0;

    for (uint32_t i = 0; i < n_src; n += src[i++].n_bytes)
        memcpy(head + n, src[i].p, src[i].n_bytes);
    return n_src > 0 ? nj_tls_record_size(head, sizeof head) : 0;
}

/* False: the peer broke the protocol, and the connection was reset. */
static bool read_records(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;
    struct nj_tls_src src[NJ_RECV_MBUFS_MAX];
    int n;

    while ((n = record_size(k)) != 0) {
        uint32_t n_src = n > 0 ? c->net->peek(k, (uint32_t)n, src, NJ_ARRAY_LEN(src)) : 0;
        if (n > 0 && n_src == 0)
            return true; /* it has not all arrived */
        if (n > 0 && read_record(k, src, n_src, (uint32_t)n, now))
            continue;
        if (!k->conn.fault)
            k->conn.fault = load_tls_fault(k->tls);
        drop_out(c);
        c->net->abort(k, now);
        return false;
    }
    return true;
}

/* False: the peer broke the protocol, and the connection was reset. */
static bool read_all(struct client *k, nj_ns now)
{
    if (k->tls)
        return read_records(k, now);

    struct crowd *c = k->crowd;
    const uint8_t *data;
    uint32_t n;

    while ((n = c->net->next(k, &data)) > 0) {
        bool good = c->plan.framing->input(&k->conn, data, n, now, &c->out);
        c->net->take(k, n);
        if (!good) {
            drop_out(c);
            c->net->abort(k, now);
            return false;
        }
    }
    return true;
}

void crowd_on_event(struct client *k, uint8_t events, nj_ns now)
{
    bool dead = events & LOAD_EV_DEAD, fin = events & LOAD_EV_PEER_FIN;

    if (!dead && (k->conn.fault || (events & LOAD_EV_OPENED && !connected(k)) ||
                  ((k->open || k->tls) && !read_all(k, now))))
        return; /* it was reset: the next event reports its end */
    /* After both FINs, the transport ends the connection by itself. */
    if (dead || (k->closing && fin)) {
        drop_out(k->crowd);
        k->crowd->net->release(k, now);
        gone(k, now);
        return;
    }
    if (fin && k->open && !(k->tls && !load_tls_is_closed(k->tls)))
        k->crowd->plan.framing->finish(&k->conn, now);
    if (fin || (k->conn.leaving && k->conn.n_open == 0) || k->crowd->phase == LOAD_CLOSING)
        close_one(k, now);
    else
        go_on(k, now);
}

static uint32_t open_more(struct crowd *c, nj_ns now)
{
    bool known = atomic_load_explicit(&c->counts.connected, memory_order_relaxed) > 0;
    uint32_t n = 0,
             most = known ? OPENING_MAX : 1; /* the first connection resolves the neighbour */

    while (now >= c->retry_at && c->n_opening < most && !nj_list_empty(&c->opening)) {
        struct client *k = nj_container_of(c->opening.next, struct client, link);
        if (!c->net->connect(k, now))
            break; /* later */
        k->attached = true;
        nj_list_del(&k->link);
        c->n_opening++;
        n++;
    }
    return n;
}

/* ---- due requests ---- */

/* The next connection in turn that can take a request, or NULL. */
static struct client *whose_turn(struct crowd *c)
{
    while (!nj_list_empty(&c->free)) {
        struct client *k = nj_container_of(nj_list_pop(&c->free), struct client, link);
        if (k->n_kept == 0 && usable(k) && room(k) > 0)
            return k; /* other connections return with their next event */
    }
    return NULL;
}

/* Sends as many requests as may be in flight, on connections in turn. */
static uint32_t ask_in_turn(struct crowd *c, nj_ns now)
{
    struct client *k;
    uint32_t n = 0;

    while (asking(c) &&
           atomic_load_explicit(&c->n_under_way, memory_order_relaxed) < c->in_flight &&
           n < ASKS_MAX && (k = whose_turn(c))) {
        ask(k, now);
        n++;
        go_on(k, now);
    }
    return n;
}

/* Sends due requests, on connections in turn; they are late if no connection has room. */
static uint32_t ask_due(struct crowd *c, nj_ns now)
{
    struct client *k;
    uint32_t n = 0;

    while (asking(c) && c->due <= (double)now && n < ASKS_MAX && (k = whose_turn(c))) {
        ask(k, (nj_ns)c->due);
        c->due += c->interval_ns;
        n++;
        go_on(k, now);
    }
    bool is_late = asking(c) && c->due > 0 && c->due <= (double)now;
    double late = is_late ? ((double)now - c->due) / c->interval_ns : 0;
    atomic_store_explicit(&c->n_unsent, (uint64_t)late, memory_order_relaxed);
    return n;
}

/* Resets a connection that can't continue without its cancelled requests. */
static void give_up(struct client *k, nj_ns now)
{
    drop_out(k->crowd);
    k->closing = true; /* by this client: the peer did not end it */
    k->crowd->net->abort(k, now);
}

static void sweep(struct crowd *c, nj_ns now)
{
    uint32_t n = c->n_wanted / SWEEPS + 1;

    if (now - c->swept_at < SWEEP_EVERY || now < c->o->timeout)
        return;
    c->swept_at = now;
    for (; n > 0; n--) {
        struct client *k = &c->clients[c->sweep_next++ % c->n_wanted];
        if (!usable(k) || k->conn.n_open == 0)
            continue;
        if (c->plan.framing->give_up(&k->conn, now - c->o->timeout, now, &c->out))
            go_on(k, now);
        else
            give_up(k, now);
    }
}

static uint32_t catch_up_all(struct crowd *c, nj_ns now)
{
    struct nj_list these;
    struct nj_list *l;
    uint32_t n = 0;

    nj_list_init(&these);
    nj_list_splice(&these, &c->behind);
    while ((l = nj_list_pop(&these))) {
        struct client *k = nj_container_of(l, struct client, behind);
        n += catch_up(k) > 0;
        if (k->n_kept == 0)
            go_on(k, now);
        else
            nj_list_push_back(&c->behind, &k->behind);
    }
    return n;
}

/* Notifies all connections of a new phase, such as the measurement. */
static void enter(struct crowd *c, enum load_phase phase, nj_ns now)
{
    c->phase = phase;
    if (asking(c) && c->due == 0)
        c->due = (double)now + c->interval_ns * nj_prng_below(&c->prng, 1u << 16) / (1u << 16);
    if (phase == LOAD_MEASURING)
        c->measure_from = now;
    if (phase == LOAD_FINISHING)
        c->measure_to = now;
    for (uint32_t i = 0; i < c->n_wanted; i++) {
        struct client *k = &c->clients[i];
        if (k->open && phase == LOAD_CLOSING)
            close_one(k, now);
        else if (k->open)
            go_on(k, now);
    }
}

uint32_t crowd_run(struct crowd *c, enum load_phase phase, nj_ns now)
{
    uint32_t n = 0;

    c->now = now;
    if (phase != c->phase)
        enter(c, phase, now);
    if (phase < LOAD_FINISHING)
        n += open_more(c, now);
    if (!nj_list_empty(&c->behind))
        n += catch_up_all(c, now);
    if (c->interval_ns > 0)
        n += ask_due(c, now);
    if (c->in_flight > 0)
        n += ask_in_turn(c, now);
    sweep(c, now);
    return n;
}

bool crowd_init(struct crowd *c, const struct load_options *o, struct nj_shard *shard,
                uint32_t index, uint32_t n)
{
    *c = (struct crowd){.o = o,
                        .shard = shard,
                        .net = shard ? &load_over_shard : &load_over_sockets,
                        .n_wanted = o->n_conns / n + (index < o->n_conns % n),
                        .budget = UINT64_MAX,
                        .measure_from = NJ_NEVER,
                        .measure_to = NJ_NEVER};
    c->plan = o->plan;
    c->plan.ended = ended;
    c->plan.came = came;
    if (o->in_flight)
        c->in_flight = o->in_flight / n + (index < o->in_flight % n);
    if (o->n_requests)
        c->budget = o->n_requests / n + (index < o->n_requests % n);
    if (o->rate > 0)
        c->interval_ns = (double)NJ_SEC * (double)o->n_conns / (o->rate * c->n_wanted);
    nj_prng_init(&c->prng, o->seed + index);
    nj_list_init(&c->opening);
    nj_list_init(&c->free);
    nj_list_init(&c->behind);
    c->out.n_max = OUT_BYTES;
    c->out.data = malloc(OUT_BYTES);
    c->clients = calloc(c->n_wanted, sizeof *c->clients);
    if (o->plan.is_https) {
        c->tls = load_tls_new(o->plan.framing->alpn, o->server_name);
        c->sealed = malloc(load_tls_sealed_bytes(OUT_BYTES));
    }
    c->sockets = shard ? NULL : load_sockets_new();
    if ((!shard && !c->sockets) || !c->out.data || !c->clients ||
        (o->plan.is_https && (!c->tls || !c->sealed)))
        return false;
    for (uint32_t i = 0; i < c->n_wanted; i++) {
        struct client *k = &c->clients[i];
        k->crowd = c;
        nj_list_init(&k->behind);
        nj_list_push_back(&c->opening, &k->link);
    }
    return true;
}

void crowd_fini(struct crowd *c, nj_ns now)
{
    for (uint32_t i = 0; c->clients && i < c->n_wanted; i++) {
        c->plan.framing->close(&c->clients[i].conn, now);
        free(c->clients[i].kept);
        load_tls_close(c->clients[i].tls);
    }
    load_tls_free(c->tls);
    load_sockets_free(c->sockets);
    free(c->sealed);
    free(c->clients);
    free(c->out.data);
}
