/* SPDX-License-Identifier: BSD-3-Clause */
#include "crowd.h"

#include <stdlib.h>
#include <string.h>

#include "active.h"
#include "base/relaxed_atomics.h"
#include "base/compiler.h"
#include "h1.h"
#include "h2.h"
#include "wire/ip6.h"

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

struct client {
    struct nj_conn_user user; /* first: see conns.h */
    struct crowd *crowd;
    struct nj_tcb *tcb;  /* NULL: not connected */
    struct nj_list link; /* of opening, of free */
    struct nj_list behind;
    uint8_t *kept; /* bytes that TCP did not accept */
    uint32_t n_kept;
    struct load_tls_conn *tls; /* NULL: cleartext, or not connected */
    bool open, closing;
    union {
        struct load_conn conn; /* of c->plan.framing */
        struct h2_conn h2;
        struct h1_conn h1;
    };
};

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

/* Number of bytes that TCP accepts now. */
static uint32_t offer(struct client *k, const uint8_t *data, uint32_t n)
{
    uint32_t room = nj_tcp_send_room(k->tcb);

    n = n < room ? n : room;
    return n > 0 && nj_tcp_send_copy(&k->crowd->shard->tcp, k->tcb, data, n) ? n : 0;
}

static void drop_out(struct crowd *c)
{
    c->out.n_bytes = 0;
    c->out.full = false;
}

/* Passes bytes to TCP. Keeps those that TCP does not accept, to preserve the order. */
static void send_bytes(struct client *k, const uint8_t *data, uint32_t n)
{
    struct crowd *c = k->crowd;
    uint32_t n_sent = k->n_kept == 0 ? offer(k, data, n) : 0;

    if (n_sent == n)
        return;
    n -= n_sent;
    uint8_t *kept = k->n_kept < KEPT_MAX ? realloc(k->kept, (size_t)k->n_kept + n) : NULL;
    if (!kept) {
        nj_tcp_abort(&c->shard->tcp, k->tcb, c->shard->now);
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
    if (n == 0 || !k->tcb || k->closing)
        return;
    if (k->tls) {
        n = load_tls_seal(k->tls, data, n, c->sealed);
        data = c->sealed;
    }
    if (n > 0)
        send_bytes(k, data, n);
    else
        nj_tcp_abort(&c->shard->tcp, k->tcb, c->shard->now);
}

/* Whether no bytes are kept any more. */
static bool catch_up(struct client *k)
{
    uint32_t n = k->tcb ? offer(k, k->kept, k->n_kept) : k->n_kept;

    k->n_kept -= n;
    memmove(k->kept, k->kept + n, k->n_kept);
    return k->n_kept == 0;
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
    uint32_t n_free = nj_tcp_send_room(k->tcb);
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

static void gone(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;

    nj_add_single_writer(&c->n_open, -(int32_t)k->open);
    c->n_opening -= !k->open;
    if (!k->conn.settled)
        c->retry_at = now + RETRY_AFTER;
    if (k->conn.fault)
        atomic_store_explicit(&c->fault, k->conn.fault, memory_order_relaxed);
    if (!k->closing && c->phase < LOAD_CLOSING)
        nj_add_single_writer(k->open ? k->conn.fault ? &c->counts.broken : &c->counts.closed
                                     : &c->counts.refused,
                             1);
    c->plan.framing->close(&k->conn, now);
    nj_list_del(&k->link);
    nj_list_del(&k->behind);
    free(k->kept);
    k->kept = NULL;
    k->n_kept = 0;
    load_tls_close(k->tls);
    k->tls = NULL;
    k->tcb = NULL;
    k->open = k->closing = false;
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
    nj_tcp_abort(&c->shard->tcp, k->tcb, c->shard->now);
    return false;
}

static void send_handshake(struct client *k)
{
    const uint8_t *data;
    uint32_t n = load_tls_output(k->tls, &data);

    if (n > 0)
        send_bytes(k, data, n);
}

/* TCP is connected. False: the connection was reset. */
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
    nj_tcp_abort(&c->shard->tcp, k->tcb, c->shard->now);
    return false;
}

/* The connection is not used any more: at the end by this client, before that by the peer. */
static void close_one(struct client *k, nj_ns now)
{
    send_out(k);
    if (k->closing)
        return;
    k->closing = true;
    nj_add_single_writer(&k->crowd->counts.closed, k->crowd->phase != LOAD_CLOSING);
    nj_tcp_close(&k->crowd->shard->tcp, k->tcb, now);
}

static bool read_record(struct client *k, uint32_t n_bytes, nj_ns now)
{
    struct crowd *c = k->crowd;
    struct nj_tcp_piece piece[NJ_RECV_MBUFS_MAX];
    struct nj_tls_src src[NJ_RECV_MBUFS_MAX];
    uint32_t n_src = nj_tcp_recv_pieces(k->tcb, n_bytes, piece, NJ_ARRAY_LEN(piece));
    const uint8_t *data;
    int n;

    for (uint32_t i = 0; i < n_src; i++)
        src[i] = (struct nj_tls_src){piece[i].p, piece[i].n_bytes};
    if (load_tls_is_established(k->tls)) {
        n = load_tls_read(k->tls, src, n_src, &data);
        nj_tcp_recv_discard(&c->shard->tcp, k->tcb, n_bytes);
        return n >= 0 &&
               (n == 0 || c->plan.framing->input(&k->conn, data, (uint32_t)n, now, &c->out));
    }
    bool good = load_tls_handshake(k->tls, src, n_src);
    nj_tcp_recv_discard(&c->shard->tcp, k->tcb, n_bytes);
    if (good)
        send_handshake(k);
    return good && (!load_tls_is_established(k->tls) || opened(k));
}

/* False: the peer broke the protocol, and the connection was reset. */
static bool read_records(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;
    uint8_t head[NJ_TLS_HEADER_BYTES];

    while (nj_tcp_recv_copy(k->tcb, 0, head, sizeof head)) {
        int n = nj_tls_record_size(head, sizeof head);
        if (n > 0 && (uint32_t)n > nj_tcp_recv_bytes(k->tcb))
            return true;
        if (n > 0 && read_record(k, (uint32_t)n, now))
            continue;
        drop_out(c);
        nj_tcp_abort(&c->shard->tcp, k->tcb, now);
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

    while ((n = nj_tcp_recv_peek(k->tcb, &data)) > 0) {
        bool good = c->plan.framing->input(&k->conn, data, n, now, &c->out);
        nj_tcp_recv_take(&c->shard->tcp, k->tcb, n);
        if (!good) {
            drop_out(c);
            nj_tcp_abort(&c->shard->tcp, k->tcb, now);
            return false;
        }
    }
    return true;
}

static void on_events(struct nj_conns *conns, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    struct client *k = tcb->user;
    bool dead = events & NJ_TCP_EV_DEAD, fin = events & NJ_TCP_EV_PEER_FIN;

    if (!dead && (k->conn.fault || (events & NJ_TCP_EV_OPENED && !connected(k)) ||
                  ((k->open || k->tls) && !read_all(k, now))))
        return; /* it was reset: the next on_events reports its end */
    /* After both FINs, TCP closes the connection by itself. */
    if (dead || (k->closing && fin)) {
        drop_out(k->crowd);
        nj_tcp_release(conns->tcp, tcb, now);
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

/* Of the same family, and link-local only toward a link-local address. */
static bool suits(const struct crowd *c, const struct nj_iface_addr *from)
{
    const struct nj_addr *to = &c->o->to;
    bool v4 = nj_addr_is_v4(to);

    return from->state == NJ_ADDR_READY && nj_addr_is_v4(&from->ip) == v4 &&
           (v4 || nj_ip6_is_link_local(&from->ip) == nj_ip6_is_link_local(to));
}

static void connect_one(struct client *k, nj_ns now)
{
    struct crowd *c = k->crowd;
    const struct nj_iface *iface = &c->shard->cfg.iface;
    uint32_t n = (uint32_t)(k - c->clients);

    for (uint32_t i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *from = &iface->addr[(n + i) % iface->n_addrs];
        if (!suits(c, from))
            continue;
        k->tcb = active_open(c->shard, &c->ports, &from->ip, &c->o->to, c->o->port, &k->user, now);
        if (k->tcb)
            break;
    }
    if (k->tcb) {
        nj_list_del(&k->link);
        c->n_opening++;
    }
}

static uint32_t open_more(struct crowd *c, nj_ns now)
{
    bool known = atomic_load_explicit(&c->counts.connected, memory_order_relaxed) > 0;
    uint32_t n = 0,
             most = known ? OPENING_MAX : 1; /* the first connection resolves the neighbour */

    while (now >= c->retry_at && c->n_opening < most && !nj_list_empty(&c->opening)) {
        struct client *k = nj_container_of(c->opening.next, struct client, link);
        connect_one(k, now);
        if (!k->tcb)
            break; /* later */
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
            return k; /* other connections return with their next on_events */
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
    nj_tcp_abort(&k->crowd->shard->tcp, k->tcb, now);
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
    for (; (l = nj_list_pop(&these)); n++) {
        struct client *k = nj_container_of(l, struct client, behind);
        if (catch_up(k))
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
        c->tls = load_tls_new(o->plan.framing->alpn);
        c->sealed = malloc(load_tls_sealed_bytes(OUT_BYTES));
    }
    if (!c->out.data || !c->clients || (o->plan.is_https && (!c->tls || !c->sealed)))
        return false;
    for (uint32_t i = 0; i < c->n_wanted; i++) {
        struct client *k = &c->clients[i];
        k->user.on_events = on_events;
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
    free(c->sealed);
    free(c->clients);
    free(c->out.data);
}
