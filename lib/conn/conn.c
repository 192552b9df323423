/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection: TCP below, HTTP/2 above, and the state before it is known to be HTTP/2.
 *
 *   SNIFF --preface--> H2 --finished / error--> LINGER --all is acknowledged; FIN, or 2 s--> gone
 *     `--HTTP/1.x: 505, garbage: nothing-------^
 *
 * LINGER has sent FIN and discards what it still reads: an immediate reset could overtake our last
 * bytes on their way to the peer. A peer that acknowledges nothing is reset after send_timeout. A
 * peer that acknowledges slowly is reset send_timeout after LINGER_MOVES: TCP alone would wait for
 * as long as the peer answers probes.
 */
#include <rte_mempool.h>
#include <rte_prefetch.h>

#include "conn/abuse_counts.h"
#include "conn/conn.h"
#include "conn/preface_detect.h"
#include "shard/shard_internal.h"
#include "tcp/seq.h"

#define LINGER_MOVES   (240 * NJ_SEC) /* time during which acknowledged bytes count as progress */
#define PREFETCH_AHEAD 16u            /* connections */
#define GOAWAY_DELAY   (500 * NJ_MS)  /* between the two GOAWAYs: some round trips */

/* With less room than this HTTP/2 is not asked for output, and input is not read. The longest
 * response head fits: a redirect whose location is a path of NJ_PATH_MAX with every byte escaped.
 */
#define ROOM_MIN (4 * NJ_PATH_MAX)

static const char http1_reply[] =
    "HTTP/1.1 505 HTTP Version Not Supported\r\n"
    "content-type: text/plain; charset=utf-8\r\n"
    "content-length: 79\r\n"
    "connection: close\r\n"
    "\r\n"
    "This server speaks HTTP/2 only. Try: curl --http2-prior-knowledge, or nghttp.\r\n";

size_t nj__conn_bytes(void)
{
    return sizeof(struct nj_conn);
}

size_t nj__talk_bytes(void)
{
    return sizeof(struct nj_talk);
}

/* --- calls of other layers -------------------------------------------------------------- */

void nj__conn_note_work(void *conn)
{
    struct nj_conn *c = conn;
    if (c != c->shard->eating) /* else its output comes next */
        nj_tcp_note_ready(&c->shard->tcp, c->tcb, 0);
}

void nj__conn_wake(void *stream)
{
    nj__conn_note_work(nj_h2_user(nj_h2_of(stream)));
    nj_h2_resume(stream);
}

/* --- the sink of HTTP/2 -------------------------------------------------------------------- */

/* Limits the mbufs queued for one peer; the fewer are left, the lower the limit. Small frames take
 * many mbufs for few bytes, and a few dozen peers that do not read them would take the whole pool.
 * A connection above the limit has bytes in the queue, so an ACK wakes it. */
static bool above_share(const struct nj_conn *c)
{
    uint32_t n_left = c->shard->n_tx_left, n_kept = c->shard->cfg.tx_pool->size / NJ_TX_POOL_KEPT;
    uint32_t share = (n_left > n_kept ? n_left - n_kept : 0) / NJ_TX_SHARES;
    uint32_t most = NJ_TX_SHARE_MAX + c->tcb->cwnd / NJ_TX_SHARE_BYTES;
    return nj_tcp_queued_mbufs(c->tcb) > (share < most ? share : most);
}

/* Bytes that may be queued; 0 when there is too little room, or the mbuf limit is reached. */
static uint32_t room_of(const struct nj_conn *c)
{
    uint32_t room = nj_tcp_send_room(c->tcb);
    return room < ROOM_MIN || above_share(c) ? 0 : room;
}

bool nj__conn_is_full(const struct nj_conn *c)
{
    return room_of(c) == 0;
}

static uint32_t sink_room(void *ctx)
{
    const struct nj_conn *c = ctx;
    return c->shard->pool_low ? 0 : room_of(c);
}

static bool sink_copy(void *ctx, const uint8_t *data, uint32_t n_bytes)
{
    struct nj_conn *c = ctx;
    enum nj_stage was = nj_stage(&c->shard->stages, NJ_STAGE_TCP);
    /* At the end of a connection HTTP/2 writes without asking for room; then GOAWAY may be lost. */
    bool taken = n_bytes <= nj_tcp_send_room(c->tcb) &&
                 nj_tcp_send_copy(&c->shard->tcp, c->tcb, data, n_bytes);
    nj_stage(&c->shard->stages, was);
    return taken;
}

static bool sink_refer(void *ctx, const struct nj_slice *slice)
{
    struct nj_conn *c = ctx;
    return nj_tcp_send_refer(&c->shard->tcp, c->tcb, slice);
}

static const struct nj_h2_sink sink = {sink_room, sink_copy, sink_refer};

/* --- life ---------------------------------------------------------------------------------- */

static struct nj_h2 *h2_of(const struct nj_conn *c)
{
    return c->talk ? c->talk->h2 : NULL;
}

static struct nj_conn *conn_new(struct nj_shard *s, struct nj_tcb *tcb, nj_ns now)
{
    struct nj_conn *c = nj_pool_take(&s->conns);
    if (!c)
        return NULL;
    c->shard = s;
    c->tcb = tcb;
    c->silent = NJ_N_SILENT; /* on no list */
    nj_list_init(&c->node);
    tcb->user = &c->user;
    nj__conn_file(c, now);
    nj__shares_add(c);
    return c;
}

/* The pool holds as many of these as connections. */
static struct nj_talk *talk_new(struct nj_conn *c)
{
    struct nj_talk *talk = nj_pool_take(&c->shard->talks);
    NJ_CHECK(talk);
    talk->conn = c;
    talk->number = ++c->shard->n_talks;
    nj_list_init(&talk->owing);
    return talk;
}

static void drop_h2(struct nj_conn *c)
{
    struct nj_h2 *h2 = h2_of(c);
    if (!h2)
        return;
    nj_h2_close(h2);
    nj_exchange_peer_gone(&c->talk->peer);
    c->talk->h2 = NULL;
}

/* Removes it from every list, whatever it waits for. */
static void unlist(struct nj_conn *c)
{
    nj_list_del(&c->node);
    if (c->talk)
        nj_list_del(&c->talk->owing);
    if (c->state == H2)
        nj_list_del(&c->talk->unread);
}

void nj__conn_reset(struct nj_conn *c, nj_ns now)
{
    unlist(c);
    nj_tcp_abort(&c->shard->tcp, c->tcb, now);
}

static void conn_free(struct nj_conn *c, nj_ns now)
{
    struct nj_shard *s = c->shard;
    drop_h2(c);
    unlist(c);
    if (c->talk)
        nj_pool_put(&s->talks, c->talk);
    nj__shares_remove(c);
    nj_tcp_release(&s->tcp, c->tcb, now);
    nj__policy_forgets(c);
    c->shard = NULL; /* marks a free object for check_some() */
    nj_pool_put(&s->conns, c);
}

/* Sends FIN after the queued bytes. */
static void linger(struct nj_conn *c, nj_ns now)
{
    drop_h2(c);
    if (c->state == H2)
        nj_list_del(&c->talk->unread);
    c->state = LINGER;
    c->moved = true;
    nj_tcp_tell_acks(c->tcb, true);
    if (c->talk)
        c->talk->moves_until = now + LINGER_MOVES;
    nj_tcp_close(&c->shard->tcp, c->tcb, now);
}

/* --- errors of HTTP/2 ------------------------------------------------------------------------ */

/* If HTTP/2 ended the connection for abuse, records the client. */
static void note_waste(const struct nj_conn *c)
{
    static const enum nj_counter reason[NJ_H2_N_WASTES] = {
#define NJ_H2_WASTE(NAME, name, text) [NJ_H2_WASTE_##NAME] = NJ_C_h2_calm_##name,
#include "h2/glitch.def"
#undef NJ_H2_WASTE
    };
    enum nj_h2_waste waste = nj_h2_wasted(c->talk->h2);

    if (waste != NJ_H2_WASTE_NONE)
        nj__abuse(c->shard, reason[waste], &c->tcb->flow.tuple.remote);
}

static void fail(struct nj_conn *c)
{
    if (c->failed)
        return;
    c->failed = true;
    note_waste(c);
}

/* --- bytes in ------------------------------------------------------------------------------ */

static void input_h2(struct nj_conn *c, const uint8_t *data, uint32_t n)
{
    enum nj_stage was = nj_stage(&c->shard->stages, NJ_STAGE_H2);

    nj_h2_recover(c->talk->h2, c->shard->now);
    if (nj_h2_input(c->talk->h2, data, n) != 0)
        fail(c);
    nj_stage(&c->shard->stages, was);
}

static void open_h2(struct nj_conn *c)
{
    struct nj_shard *s = c->shard;
    struct nj_talk *talk = c->talk;

    nj_count(&s->counters, NJ_C_conn_h2);
    nj_list_init(&talk->peer.exchanges);
    nj_list_init(&talk->peer.holder);
    talk->h2 = nj_h2_open(s->h2, c);
    if (talk->h2 && s->draining) { /* accepted while the listener was closed */
        nj_h2_goaway(talk->h2);
        nj_h2_goaway(talk->h2);
    }
    if (talk->h2)
        input_h2(c, talk->head, talk->n_head);
    else
        c->failed = true;
    c->state = H2;
    nj_list_init(&talk->unread); /* its place in the union held the first bytes */
}

/* Detects the protocol from the first bytes. Returns how many bytes of `data` were used. */
static uint32_t sniff(struct nj_conn *c, const uint8_t *data, uint32_t n, nj_ns now)
{
    struct nj_shard *s = c->shard;
    struct nj_talk *talk = c->talk ? c->talk : (c->talk = talk_new(c));
    uint32_t free_head = NJ_SNIFF_BYTES - talk->n_head;
    uint32_t used = n < free_head ? n : free_head;

    memcpy(talk->head + talk->n_head, data, used);
    talk->n_head = (uint8_t)(talk->n_head + used);
    switch (nj_sniff(talk->head, talk->n_head)) {
    case NJ_SNIFF_MORE:
        break;
    case NJ_SNIFF_H2:
        open_h2(c);
        break;
    case NJ_SNIFF_HTTP1:
        nj_count(&s->counters, NJ_C_conn_http1);
        nj_tcp_send_copy(&s->tcp, c->tcb, (const uint8_t *)http1_reply, sizeof http1_reply - 1);
        linger(c, now);
        break;
    case NJ_SNIFF_GARBAGE:
        nj_count(&s->counters, NJ_C_conn_garbage);
        linger(c, now);
        break;
    }
    return used;
}

bool nj__conn_may_read(const struct nj_conn *c)
{
    return c->state != H2 || (!c->failed && sink_room((void *)(uintptr_t)c) > 0);
}

static void read_some(struct nj_conn *c, nj_ns now)
{
    struct nj_tcp *tcp = &c->shard->tcp;
    const uint8_t *data;
    uint32_t n, n_mbufs = 0;

    while (nj__conn_may_read(c) && (n = nj_tcp_recv_peek(c->tcb, &data)) > 0) {
        if (n_mbufs++ == NJ_EAT_MBUFS_MAX) {
            nj_tcp_note_ready(tcp, c->tcb, 0);
            return;
        }
        if (c->state == SNIFF)
            n = sniff(c, data, n, now);
        else if (c->state == H2)
            input_h2(c, data, n);
        nj_tcp_recv_take(tcp, c->tcb, n);
    }
}

/* Input counts as progress on a connection without streams, except for bytes of a frame that was
 * incomplete the last time: that frame has to end within header_timeout. */
static void note_read(struct nj_conn *c, nj_ns now)
{
    nj_ns since = NJ_NEVER;

    if (c->state == LINGER)
        return;
    if (c->state == H2 && c->talk->h2)
        since = nj_h2_unfinished_since(c->talk->h2, now);
    c->unfinished = since != NJ_NEVER;
    c->moved |= !nj__conn_has_streams(c) && (since == NJ_NEVER || since == now);
    if (c->unfinished && now - since >= c->shard->cfg.header_timeout)
        nj_h2_calm(c->talk->h2, NJ_H2_WASTE_SLOW);
}

/* --- bytes out ----------------------------------------------------------------------------- */

/* Lets HTTP/2 write. The mbufs it uses are not available to the next connection. */
static void output_h2(struct nj_conn *c)
{
    struct nj_shard *s = c->shard;
    uint32_t had = nj_tcp_queued_mbufs(c->tcb);
    uint64_t n_body = nj_counter_read(&s->counters, NJ_C_body_bytes);
    enum nj_stage was = nj_stage(&s->stages, NJ_STAGE_H2);

    if (nj_h2_output(c->talk->h2, &sink, c) != 0 && !c->failed) {
        fail(c);
        nj_h2_output(c->talk->h2, &sink, c); /* the GOAWAY with the error */
    }
    nj_stage(&s->stages, was);
    uint32_t taken = nj_tcp_queued_mbufs(c->tcb) - had;
    s->n_tx_left -= taken < s->n_tx_left ? taken : s->n_tx_left;
    if (nj_counter_read(&s->counters, NJ_C_body_bytes) == n_body)
        return;
    c->owes_body = true;
    c->talk->body_end = nj_tcp_queued_end(c->tcb);
}

static void write_some(struct nj_conn *c, nj_ns now)
{
    if (c->state != H2)
        return;
    struct nj_h2 *h2 = h2_of(c);
    if (h2)
        output_h2(c);
    bool peer_left = c->peer_fin && !nj__conn_has_input(c) && (!h2 || nj_h2_streams(h2) == 0);
    if (c->failed || peer_left || nj_h2_finished(h2))
        linger(c, now);
    else if (c->shard->pool_low && nj_tcp_queued_mbufs(c->tcb) == 0)
        nj_tcp_note_ready(&c->shard->tcp, c->tcb, 0); /* no ACK would wake it */
}

/* When everything is queued and TCP may send all of it, the ACK is not reported. This holds only
 * for a peer that had no ACKs outstanding before: its ACK is expected to come (timeouts.c). */
static void choose_news(struct nj_conn *c)
{
    bool quiet = c->state == H2 && !c->failed && !c->peer_fin && nj_h2_is_idle(h2_of(c)) &&
                 !nj__conn_has_input(c) && nj_tcp_all_may_go(c->tcb) &&
                 c->silent != NJ_SILENT_STALLED;

    nj_tcp_tell_acks(c->tcb, !quiet);
}

/* The peer acknowledged bytes. They count as progress of streams only if they belong to bodies. On
 * a LINGER connection they count only until moves_until. */
static void note_moved(struct nj_conn *c, nj_ns now)
{
    bool of_body = c->owes_body; /* else these were answers to PING and other control frames */

    c->owes_body = of_body && nj_seq_lt(c->tcb->snd_una, c->talk->body_end);
    if (c->state == LINGER)
        c->moved |= !c->talk || now < c->talk->moves_until;
    else
        c->moved |= of_body || !nj__conn_has_streams(c);
}

/* A FIN may come from a peer that sends no further requests and still reads, or from a closed
 * socket, which resets when it is sent something. A handler may wait long before it sends; PING
 * finds out. */
static void ask_who_is_there(struct nj_conn *c)
{
    if (c->state != H2 || nj_h2_streams(h2_of(c)) == 0)
        return;
    nj_h2_ping(h2_of(c));
    nj__conn_note_work(c);
}

/* Processes the events of a connection of the server. */
static void eat(struct nj_shard *s, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    struct nj_conn *c = nj_container_of(tcb->user, struct nj_conn, user);

    if (events & NJ_TCP_EV_DEAD) {
        conn_free(c, now);
        return;
    }
    if (events & NJ_TCP_EV_PEER_FIN)
        c->peer_fin = true;
    if (events & NJ_TCP_EV_WRITABLE)
        note_moved(c, now);
    s->eating = c;
    if (nj__conn_has_input(c)) {
        read_some(c, now);
        note_read(c, now);
    }
    if (c->peer_fin && !nj__conn_has_input(c))
        nj__conn_cut_bodies(c);
    nj__conn_serve(c, now);
    s->eating = NULL;
    write_some(c, now);
    if (events & NJ_TCP_EV_PEER_FIN)
        ask_who_is_there(c);
    if (c->state == SNIFF && c->peer_fin)
        linger(c, now);
    choose_news(c);
    nj__pressure_note(c, now);
    if (nj__conn_has_input(c) && nj__conn_may_read(c))
        nj_tcp_note_ready(&s->tcp, tcb, 0); /* output made room, or the input is to be discarded */
    else if (c->state == LINGER && c->peer_fin && nj__conn_all_acked(c))
        conn_free(c, now); /* both sides are finished */
    else
        nj__conn_file(c, now);
}

/* Delivers events to the user of the connection. A newly opened connection becomes the server's. */
static void tell(struct nj_shard *s, struct nj_tcb *tcb, uint8_t events, nj_ns now)
{
    struct nj_conn *c;

    if (!tcb->user && !(events & NJ_TCP_EV_DEAD) && (c = conn_new(s, tcb, now))) {
        c->user.news = eat;
        if (!nj__policy_welcomes(c)) {
            nj__conn_reset(c, now);
            return;
        }
    }
    const struct nj_conn_user *user = tcb->user;
    if (user)
        user->news(s, tcb, events, now);
    else /* it ended before it was used, or all struct nj_conn are in use (as many as there are
            TCBs) */
        nj_tcp_release(&s->tcp, tcb, now);
}

/* Like nj_tcp_prefetch(), for the data above TCP of the next few connections of the batch. */
static void prefetch(const struct nj_list *batch)
{
    const struct nj_talk *talk[PREFETCH_AHEAD];
    uint32_t n = 0, n_seen = 0;

    for (const struct nj_list *at = batch->next; at != batch && n_seen++ < PREFETCH_AHEAD;
         at = at->next) {
        const struct nj_conn_user *user = nj_tcp_of_ready(at)->user;
        if (!user || user->news != eat)
            continue;
        talk[n] = nj_container_of(user, const struct nj_conn, user)->talk;
        if (!talk[n])
            continue;
        rte_prefetch0(talk[n]);
        rte_prefetch0((const uint8_t *)talk[n++] + NJ_CACHE_LINE);
    }
    for (uint32_t i = 0; i < n; i++)
        if (talk[i]->h2)
            nj_h2_prefetch(talk[i]->h2);
}

uint32_t nj__conns_eat(struct nj_shard *s, nj_ns now)
{
    struct nj_list batch;
    struct nj_tcb *t;
    uint8_t events;
    uint32_t eaten = 0;

    nj_list_init(&batch);
    nj_tcp_take_ready(&s->tcp, &batch);
    if (!nj_list_empty(&batch))
        s->n_tx_left = nj__pressure_tx_left(s);
    for (;;) {
        if (eaten % PREFETCH_AHEAD == 0 && batch.next != batch.prev) /* two or above */
            prefetch(&batch);
        t = nj_tcp_next_ready(&batch, &events);
        if (!t)
            break;
        s->pool_low = s->n_tx_left < NJ_TX_POOL_LOW;
        tell(s, t, events, now);
        eaten++;
    }
    if (s->n_tx_left < NJ_TX_POOL_LOW)
        nj__pressure_shed(s, now);
    nj__handlers_flush(s);
    return eaten;
}

/* --- timers and shutdown ------------------------------------------------------------------- */

void nj__conn_leave(struct nj_conn *c, nj_ns now)
{
    struct nj_h2 *h2 = c->state == H2 ? h2_of(c) : NULL;

    if (h2) {
        nj_h2_goaway(h2);
        nj_h2_goaway(h2);
        if (nj_h2_output(h2, &sink, c) != 0) {
            fail(c);
            nj_h2_output(h2, &sink, c); /* the GOAWAY with the error */
        }
    }
    linger(c, now);
    nj__conn_file(c, now);
}

void nj__conn_end_silence(struct nj_conn *c, nj_ns now)
{
    struct nj_shard *s = c->shard;

    if (c->state == LINGER && nj__conn_all_acked(c)) {
        if (nj__shares_tight(s)) /* TCP would keep its TCB for a minute */
            nj__conn_reset(c, now);
        else
            conn_free(c, now);
        return;
    }
    if (c->silent == NJ_SILENT_STALLED)
        nj__abuse(s, NJ_C_conn_timeout, &c->tcb->flow.tuple.remote);
    else
        nj_count(&s->counters, NJ_C_conn_timeout);
    if (c->silent == NJ_SILENT_IDLE || c->silent == NJ_SILENT_BEGUN) {
        if (c->silent == NJ_SILENT_BEGUN)
            nj_h2_calm(c->talk->h2, NJ_H2_WASTE_SLOW);
        nj__conn_leave(c, now);
    } else {
        nj__conn_reset(c, now);
    }
}

/* Connections on no list are about to be freed. */
static void goaway_list(struct nj_shard *s, const struct nj_list *list, nj_ns now)
{
    for (struct nj_list *n = list->next; n != list; n = n->next) {
        struct nj_conn *c = nj_container_of(n, struct nj_conn, node);
        if (c->state == SNIFF)
            linger(c, now);
        else if (c->state == H2)
            nj_h2_goaway(c->talk->h2);
        nj_tcp_note_ready(&s->tcp, c->tcb, 0);
    }
}

static void goaway_all(struct nj_shard *s, nj_ns now)
{
    for (enum nj_silent i = 0; i < NJ_N_SILENT; i++)
        goaway_list(s, &s->silent[i], now);
}

uint32_t nj__conns_tick(struct nj_shard *s, nj_ns now)
{
    uint32_t n = nj__pressure_tick(s, now) + nj__patience_tick(s, now) + nj__shares_run(s, now);

    if (!s->draining || now < s->goaway_at)
        return n;
    s->goaway_at = NJ_NEVER;
    goaway_all(s, now);
    return n + 1;
}

nj_ns nj__conns_next(const struct nj_shard *s)
{
    nj_ns patience = nj__patience_next(s), pressure = nj__pressure_next(s);
    nj_ns next = patience < pressure ? patience : pressure;

    if (nj__shares_busy(s))
        return 0;
    return s->draining && s->goaway_at < next ? s->goaway_at : next;
}

void nj_shard_drain(struct nj_shard *s, nj_ns now)
{
    if (s->draining)
        return;
    s->draining = true;
    s->tcp.draining = true;
    s->goaway_at = now + GOAWAY_DELAY;
    goaway_all(s, now);
}
