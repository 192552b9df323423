/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of a shard's connections, between TCP and HTTP. Follows RFC 8446 5 and 6.
 *
 * A record is sealed when TCP can send it, into a buffer that the send queue then refers to. TCP
 * sends a retransmission from the same bytes (docs/adr/0022).
 */
#include <stdlib.h>
#include <string.h>

#include <rte_prefetch.h>

#include "base/page_alloc.h"
#include "conn/abuse_reason_counts.h"
#include "conn/conn_tls_internal.h"
#include "conn/send_room.h"
#include "http/client_cert.h"
#include "telem/counters_conn.h"

/* Expanded keys of a shard: a cache, by connection and direction. To expand a key costs as much as
 * to encrypt 1,700 bytes. */
#define EXPANDED_MAX 4096u
/* While cwnd is below this, records have the length of a segment: the peer can then use the first
 * bytes without waiting for the last ones. */
#define BULK_CWND    65536u
/* From this length on, sealed bytes stay in a buffer of their own. Shorter ones are copied into
 * mbufs, as are all when no buffer is free. */
#define BUFFER_MIN   8192u
#define BUFFERS_MAX  4096u /* 68 MiB: those in use, and freed ones for the next records */

/* Sealed bytes that a send queue refers to. */
struct buffer {
    struct nj_ref ref;
    struct nj_pool *of;
    uint8_t bytes[SEALED_MAX];
};

/* --- life --------------------------------------------------------------------------------- */

static size_t all_expanded_bytes(const struct nj_conns_tls *t)
{
    return (size_t)EXPANDED_MAX * nj_tls_expanded_bytes(t->crypto.aead);
}

static void free_all(struct nj_conns_tls *t)
{
    if (t->expanded)
        nj_pages_unmap(t->expanded, all_expanded_bytes(t));
    nj_tls_aead_free(t->crypto.aead);
    nj_tls_kdf_free(t->crypto.kdf);
    nj_pool_fini(&t->conns);
    nj_pool_fini(&t->handshakes);
    nj_pool_fini(&t->buffers);
    free(t->conn);
    explicit_bzero(t, sizeof *t);
    nj_pages_unmap(t, sizeof *t);
}

bool nj__tls_init(struct nj_conns *cs)
{
    if (!cs->cfg->tls)
        return true;
    struct nj_conns_tls *t = nj_pages_map(sizeof *t, 0); /* has plaintext */
    if (!t)
        return false;
    t->crypto = (struct nj_tls_crypto){nj_tls_aead_new(NJ_TLS_ENGINE_AUTO), nj_tls_kdf_new()};
    t->conn = calloc(cs->tcp->cfg.conns_max, sizeof t->conn[0]);
    if (t->crypto.aead)
        t->expanded = nj_pages_map(all_expanded_bytes(t), 0);
    if (!t->crypto.aead || !t->crypto.kdf || !t->conn || !t->expanded ||
        !nj_pool_init(&t->conns, sizeof(struct nj_conn_tls), cs->tcp->cfg.conns_max) ||
        !nj__handshakes_init(t, cs->tcp->cfg.conns_max) ||
        !nj_pool_init(&t->buffers, sizeof(struct buffer), BUFFERS_MAX)) {
        free_all(t);
        return false;
    }
    cs->tls = t;
    return true;
}

void nj__tls_fini(struct nj_conns *cs)
{
    if (!cs->tls)
        return;
    while (cs->tls->handshakes.n_used > 0)
        nj__tls_collect_handshakes(cs); /* workers will return them */
    free_all(cs->tls);
    cs->tls = NULL;
}

uint32_t nj__tls_n_handshakes(const struct nj_conns *cs)
{
    return cs->tls ? cs->tls->handshakes.n_used : 0;
}

static struct nj_tls_expanded *expanded_of(const struct nj_conn *c, uint32_t direction)
{
    struct nj_conns_tls *t = c->conns->tls;
    uint32_t at = (2 * nj__conn_tls_index(c) + direction) % EXPANDED_MAX;
    return (void *)(t->expanded + (size_t)at * nj_tls_expanded_bytes(t->crypto.aead));
}

/* Not a part of its caller: it would cost cleartext instructions. */
__attribute__((noinline)) void nj__conn_tls_prefetch(const struct nj_conn *const *conn, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!conn[i]->is_tls)
            continue;
        rte_prefetch0(nj__conn_tls_place(conn[i]));
        for (uint32_t direction = 0; direction < 2; direction++)
            nj_tls_expanded_prefetch(conn[i]->conns->tls->crypto.aead,
                                     expanded_of(conn[i], direction));
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct nj_conn_tls *ct = conn[i]->is_tls ? *nj__conn_tls_place(conn[i]) : NULL;
        for (size_t at = 0; ct && at < sizeof *ct; at += NJ_CACHE_LINE)
            rte_prefetch0((const uint8_t *)ct + at);
    }
}

static void count_with_client(const struct nj_conn *c, nj_counter why)
{
    nj__abuse_record(c->conns, why, nj__conn_remote(c));
}

/* The connection ends. Its handshake, if it has not finished, has failed. */
static void end_handshake(const struct nj_conn *c, struct nj_conn_tls *ct)
{
    if (ct->handshake)
        nj__handshake_leave(c->conns, ct);
    if (ct->established || ct->ended)
        return;
    ct->ended = true;
    count_with_client(c, NJ_C_tls_failed_closed);
}

void nj__conn_tls_free(struct nj_conn *c)
{
    struct nj_conn_tls **place = nj__conn_tls_place(c);

    if (!*place)
        return;
    for (uint32_t direction = 0; (*place)->established && direction < 2; direction++)
        nj_tls_expanded_wipe(c->conns->tls->crypto.aead, expanded_of(c, direction));
    end_handshake(c, *place);
    nj_tls_session_wipe(&(*place)->session);
    if ((*place)->cert)
        nj_ref_put(&(*place)->cert->ref);
    nj_pool_put(&c->conns->tls->conns, *place);
    *place = NULL;
}

bool nj__conn_tls_speaks_http1(const struct nj_conn *c)
{
    const struct nj_conn_tls *ct = c->is_tls ? *nj__conn_tls_place(c) : NULL;
    return ct && ct->http1;
}

const char *nj__conn_tls_suite(const void *conn)
{
    return nj_tls_cipher_name((*nj__conn_tls_place(conn))->session.write.cipher);
}

struct nj_client_cert *nj__conn_tls_cert(const void *conn)
{
    return (*nj__conn_tls_place(conn))->cert;
}

const struct nj_site_identity *nj__conn_tls_identity(const void *conn)
{
    return &(*nj__conn_tls_place(conn))->identity;
}

/* --- input --------------------------------------------------------------------------------- */

/* Is the first record complete, or one that cannot be valid? */
static bool has_record(const struct nj_conn *c)
{
    uint8_t head[NJ_TLS_HEADER_BYTES];

    if (!nj_tcp_recv_copy(c->tcb, 0, head, sizeof head))
        return false;
    int n = nj_tls_record_size(head, sizeof head);
    return n < 0 || (uint32_t)n <= nj_tcp_recv_bytes(c->tcb);
}

bool nj__conn_tls_is_with_worker(const struct nj_conn *c)
{
    const struct nj_conn_tls *ct = c->is_tls ? *nj__conn_tls_place(c) : NULL;
    return ct && (nj__handshake_runs(ct) || nj__handshake_is_finished(ct));
}

/* Bytes after the end of the connection or of its input, which are no records. */
static bool discards_input(const struct nj_conn *c, const struct nj_conn_tls *ct)
{
    return c->state == NJ_CONN_LINGER ||
           (ct && (ct->ended || (ct->established && nj_tls_session_is_read_closed(&ct->session))));
}

/* Sets c->input_waits. */
static void look_at_input(struct nj_conn *c)
{
    const struct nj_conn_tls *ct = *nj__conn_tls_place(c);

    if (discards_input(c, ct))
        c->input_waits = false;
    else if (nj__conn_tls_is_with_worker(c))
        c->input_waits = !nj__handshake_is_finished(ct);
    else
        c->input_waits = !has_record(c);
}

nj_ns nj__conn_tls_unfinished_record_since(const struct nj_conn *c, nj_ns now)
{
    struct nj_conn_tls *ct = *nj__conn_tls_place(c);
    uint32_t n = nj_tcp_recv_bytes(c->tcb), seq = c->tcb->rcv_nxt - n;

    if (!ct || !ct->established || !c->input_waits || n == 0) {
        if (ct)
            ct->record_waits = false;
        return NJ_NEVER;
    }
    if (!ct->record_waits || ct->record_seq != seq)
        ct->record_since = now;
    ct->record_waits = true;
    ct->record_seq = seq;
    return ct->record_since;
}

/* Also into a full send queue: no connection ends without (RFC 8446 6.1), unless mbufs are short
 * and its client has taken its share. */
static void send_alert(struct nj_conn *c, struct nj_conn_tls *ct, enum nj_tls_alert alert)
{
    struct nj_conns *cs = c->conns;
    uint8_t record[NJ_TLS_ALERT_RECORD_BYTES];
    struct nj_tls_dst dst = {record, sizeof record};

    if (nj_unlikely(cs->tx_short) && !nj__conn_has_send_share(c))
        return;
    int n = nj_tls_session_write_alert(&ct->session, &cs->tls->crypto, expanded_of(c, 1), alert,
                                       &dst, 1);
    if (n > 0 && nj_tcp_may_send(c->tcb))
        nj_tcp_send_copy(cs->tcp, c->tcb, record, (uint32_t)n);
}

static void end_by_alert(struct nj_conn *c, struct nj_conn_tls *ct, enum nj_tls_alert alert,
                         nj_counter why)
{
    send_alert(c, ct, alert);
    nj__conn_tls_give_up(c, why);
}

/* Opens the first record, of `n` bytes. Returns its plaintext, which is valid until the next call.
 */
static struct nj_tls_src input_record(struct nj_conn *c, struct nj_conn_tls *ct, uint32_t n,
                                      nj_ns now)
{
    struct nj_conns_tls *t = c->conns->tls;
    struct nj_tcp_piece piece[NJ_RECV_MBUFS_MAX];
    struct nj_tls_src src[NJ_RECV_MBUFS_MAX];
    uint32_t n_pieces = nj_tcp_recv_pieces(c->tcb, n, piece, NJ_ARRAY_LEN(piece));

    for (uint32_t i = 0; i < n_pieces; i++)
        src[i] = (struct nj_tls_src){piece[i].p, piece[i].n_bytes};
    struct nj_tls_input in = nj_tls_session_input(&ct->session, &t->crypto, expanded_of(c, 0), src,
                                                  n_pieces, t->scratch, sizeof t->scratch, now);
    nj_tcp_recv_discard(c->conns->tcp, c->tcb, n);
    switch (in.kind) {
    case NJ_TLS_IN_NOTHING:
        break;
    case NJ_TLS_IN_KEY_UPDATE:
        nj_count(c->conns->counters, NJ_C_tls_key_updates);
        break;
    case NJ_TLS_IN_DATA:
        nj_count_n(c->conns->counters, NJ_C_tls_rx_bytes, in.n_bytes);
        nj_tls_session_forgive(&ct->session);
        return (struct nj_tls_src){in.data, in.n_bytes};
    case NJ_TLS_IN_CLOSE_NOTIFY:
        c->peer_fin = true;
        break;
    case NJ_TLS_IN_PEER_ALERT:
        nj__conn_tls_give_up(c, NJ_C_tls_peer_alert);
        break;
    case NJ_TLS_IN_ERROR:
        end_by_alert(c, ct, in.alert, in.is_flood ? NJ_C_tls_flood : NJ_C_tls_bad_record);
        break;
    }
    return (struct nj_tls_src){0};
}

bool nj__conn_tls_read_record(struct nj_conn *c, struct nj_tls_src *plain, nj_ns now)
{
    struct nj_conn_tls *ct = *nj__conn_tls_place(c);
    uint8_t head[NJ_TLS_HEADER_BYTES];

    *plain = (struct nj_tls_src){0};
    if (!ct || !ct->established || discards_input(c, ct) ||
        !nj_tcp_recv_copy(c->tcb, 0, head, sizeof head))
        return false;
    int n = nj_tls_record_size(head, sizeof head);
    if (n < 0)
        end_by_alert(c, ct, (enum nj_tls_alert) - n, NJ_C_tls_bad_record);
    else if ((uint32_t)n > nj_tcp_recv_bytes(c->tcb))
        return false;
    else
        *plain = input_record(c, ct, (uint32_t)n, now);
    return true;
}

static struct nj_conn_tls *begin(struct nj_conn *c)
{
    struct nj_conn_tls *ct = nj_pool_take(&c->conns->tls->conns);

    NJ_CHECK(ct); /* as many as connections */
    memset(ct, 0, sizeof *ct);
    *nj__conn_tls_place(c) = ct;
    nj__handshake_begin(c, ct);
    return ct;
}

bool nj__conn_tls_begin_read(struct nj_conn *c)
{
    struct nj_conn_tls *ct = *nj__conn_tls_place(c);

    look_at_input(c);
    if (!nj__conn_has_input(c) || (c->state == NJ_CONN_SNIFF && !nj__conn_may_read(c)))
        return false;
    if (!ct && c->state != NJ_CONN_LINGER && !(ct = begin(c))->handshake)
        nj__conn_tls_give_up(c, NJ_C_tls_handshakes_full);
    if (ct && ct->handshake && discards_input(c, ct))
        nj__handshake_leave(c->conns, ct);
    if (ct && ct->handshake)
        nj__handshake_advance(c, ct);
    return true;
}

void nj__conn_tls_end_read(struct nj_conn *c)
{
    if (discards_input(c, *nj__conn_tls_place(c)))
        nj_tcp_recv_discard(c->conns->tcp, c->tcb, nj_tcp_recv_bytes(c->tcb));
    look_at_input(c);
}

void nj__conn_tls_close(struct nj_conn *c)
{
    struct nj_conn_tls *ct = *nj__conn_tls_place(c);

    if (ct && ct->established && !ct->broken && !nj_tls_session_is_write_closed(&ct->session))
        send_alert(c, ct, NJ_TLS_CLOSE_NOTIFY);
    if (ct)
        end_handshake(c, ct);
    else if (nj_tcp_recv_bytes(c->tcb) > 0) /* a part of its first record */
        count_with_client(c, NJ_C_tls_failed_closed);
}

/* --- output -------------------------------------------------------------------------------- */

static uint32_t record_max(const struct nj_conn *c)
{
    return c->tcb->cwnd < BULK_CWND ? c->tcb->snd_mss - NJ_TLS_RECORD_OVERHEAD : NJ_TLS_CONTENT_MAX;
}

uint32_t nj__conn_tls_room(const struct nj_conn *c, uint32_t tcp_room)
{
    const struct nj_conns_tls *t = c->conns->tls;
    const struct nj_conn_tls *ct = *nj__conn_tls_place(c);
    /* As many full records as TCP sends at once: they are then still in the cache. */
    const uint32_t n_full = NJ_TLS_CONTENT_MAX + NJ_TLS_RECORD_OVERHEAD;
    uint32_t n_wanted = (nj_tcp_send_wanted(c->tcb) + n_full - 1) / n_full * n_full;
    bool may_write = !ct->broken && !nj_tls_session_is_write_closed(&ct->session);
    uint32_t n_room = may_write ? nj_min_u32(tcp_room, n_wanted) : 0;
    uint32_t room = nj_tls_session_content_that_fits(&ct->session, n_room, record_max(c));

    return room > t->n_pending_bytes ? room - t->n_pending_bytes : 0;
}

static void put_buffer(struct nj_ref *ref)
{
    struct buffer *b = nj_container_of(ref, struct buffer, ref);
    nj_pool_put(b->of, b);
}

/* NULL: the bytes are few, or no buffer is free. */
static struct buffer *take_buffer(struct nj_conns_tls *t, uint32_t n_bytes)
{
    struct buffer *b = n_bytes >= BUFFER_MIN ? nj_pool_take_raw(&t->buffers) : NULL;

    if (b) {
        nj_ref_init(&b->ref, put_buffer);
        b->of = &t->buffers;
    }
    return b;
}

/* Seals `n` pieces, at most NJ_TLS_CONTENT_MAX bytes in all, and queues the records. */
static bool seal(struct nj_conn *c, struct nj_conn_tls *ct, const struct nj_tls_src *src,
                 uint32_t n, uint32_t n_bytes)
{
    struct nj_conns *cs = c->conns;
    struct buffer *b = take_buffer(cs->tls, n_bytes);
    const struct nj_tls_dst dst = {b ? b->bytes : cs->tls->sealed, SEALED_MAX};
    int n_sealed = nj_tls_session_seal(&ct->session, &cs->tls->crypto, expanded_of(c, 1),
                                       record_max(c), src, n, &dst, 1);
    bool ok = n_sealed > 0;

    if (ok && b)
        ok = nj_tcp_send_refer(cs->tcp, c->tcb,
                               &(struct nj_slice){b->bytes, (uint32_t)n_sealed, &b->ref});
    else if (ok)
        ok = nj_tcp_send_copy(cs->tcp, c->tcb, cs->tls->sealed, (uint32_t)n_sealed);
    if (b)
        nj_ref_put(&b->ref);
    if (ok)
        nj_count_n(cs->counters, NJ_C_tls_tx_bytes, n_bytes);
    return ok;
}

/* Seals what is pending and releases its references. */
bool nj__conn_tls_flush(struct nj_conn *c)
{
    struct nj_conns_tls *t = c->conns->tls;
    struct nj_conn_tls *ct = *nj__conn_tls_place(c);
    struct nj_tls_src src[PENDING_PIECES_MAX];
    /* HTTP/2 ends a connection without asking for room, even one that the peer has reset. */
    const bool may_send = t->n_pending == 0 || nj_tcp_may_send(c->tcb);
    bool ok = !t->lost && !ct->broken && may_send;

    for (uint32_t i = 0; i < t->n_pending; i++)
        src[i] = (struct nj_tls_src){t->pending[i].data, t->pending[i].n_bytes};
    if (t->n_pending > 0 && ok)
        ok = seal(c, ct, src, t->n_pending, t->n_pending_bytes);
    for (uint32_t i = 0; i < t->n_pending; i++)
        if (t->pending[i].ref)
            nj_ref_put(t->pending[i].ref);
    t->n_pending = t->n_pending_bytes = t->n_copied = 0;
    t->lost = false;
    if (!ok && !ct->broken && may_send)
        nj_count(c->conns->counters, NJ_C_tls_no_mbuf);
    ct->broken |= !ok && may_send;
    return ok;
}

bool nj__conn_tls_is_broken(const struct nj_conn *c)
{
    const struct nj_conn_tls *ct = *nj__conn_tls_place(c);
    return ct && ct->broken;
}

/* Room for a piece, after the pending ones were sealed if need be. Short records have more
 * overhead. */
static uint32_t pending_room(struct nj_conn *c)
{
    struct nj_conns_tls *t = c->conns->tls;
    const struct nj_tls_session *session = &(*nj__conn_tls_place(c))->session;
    uint32_t n_max = nj_min_u32(
        NJ_TLS_CONTENT_MAX, nj_tls_session_content_that_fits(session, SEALED_MAX, record_max(c)));

    if ((t->n_pending == PENDING_PIECES_MAX || t->n_pending_bytes >= n_max) &&
        !nj__conn_tls_flush(c))
        t->lost = true;
    return n_max - t->n_pending_bytes;
}

static void add_pending(struct nj_conns_tls *t, const uint8_t *data, uint32_t n, struct nj_ref *ref)
{
    t->pending[t->n_pending++] = (struct nj_slice){.data = data, .n_bytes = n, .ref = ref};
    t->n_pending_bytes += n;
}

bool nj__conn_tls_copy(void *conn, const uint8_t *data, uint32_t n_bytes)
{
    struct nj_conn *c = conn;
    struct nj_conns_tls *t = c->conns->tls;

    while (n_bytes > 0) {
        uint32_t n = nj_min_u32(n_bytes, pending_room(c));
        if (t->lost)
            return false;
        memcpy(t->copied + t->n_copied, data, n);
        add_pending(t, t->copied + t->n_copied, n, NULL);
        t->n_copied += n;
        data += n;
        n_bytes -= n;
    }
    return true;
}

bool nj__conn_tls_refer(void *conn, const struct nj_slice *slice)
{
    struct nj_conn *c = conn;
    struct nj_conns_tls *t = c->conns->tls;

    for (uint32_t at = 0; at < slice->n_bytes;) {
        uint32_t n = nj_min_u32(slice->n_bytes - at, pending_room(c));
        if (t->lost)
            return false;
        if (slice->ref)
            nj_ref_take(slice->ref);
        add_pending(t, slice->data + at, n, slice->ref);
        at += n;
    }
    return true;
}
