/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handshakes and records of a shard's connections. Follows RFC 8446 2, 5 and 6.
 *
 * A handshake costs some 100 us, so workers run it, one flight at a time. Its input stays in the
 * receive queue until the worker has said how much of it belongs to the handshake.
 *
 * Records are sealed into the mbufs of the send queue: sealing takes the place of the copy from the
 * file store, and TCP sends a retransmission from the same bytes (docs/adr/0022).
 */
#include "conn/conn_tls.h"

#include <stdlib.h>
#include <string.h>

#include "conn/conn.h"
#include "http/client_cert.h"
#include "shard/shard_conn_internal.h"
#include "tls/handshake.h"

/* Input of one flight of the client. A certificate chain of a client is longer than any
 * ClientHello. */
#define FLIGHT_BYTES_MAX   32768u
/* Expanded keys of a shard: a cache, by connection and direction. */
#define EXPANDED_MAX       256u
/* Output of one call of nj_h2_output() that waits to be sealed. */
#define PENDING_PIECES_MAX 64u
#define PENDING_COPY_MAX   16384u
/* While cwnd is below this, records have the length of a segment: the peer can then use the first
 * bytes without waiting for the last ones. */
#define BULK_CWND          65536u

struct handshake {
    struct nj_task task;
    struct nj_conn *conn; /* NULL: it has gone */
    struct nj_shard_tls *of;
    struct nj_tls_current_context *current;
    struct nj_tls_handshake *h;  /* made by the first task; NULL: no memory */
    struct nj_client_cert *cert; /* NULL: none, or no memory for it */
    enum nj_tls_handshake_result result;
    bool runs;                /* a worker has it */
    bool finished;            /* its result waits for the connection's turn */
    uint64_t (*cycles)(void); /* NULL: not measured */
    uint64_t n_cycles;        /* of workers, not counted yet */
    uint32_t n_in, n_used;
    uint8_t in[FLIGHT_BYTES_MAX];
};

struct nj_conn_tls {
    struct nj_tls_session session; /* once it is established */
    struct handshake *handshake;   /* until then */
    struct nj_client_cert *cert;   /* NULL: none */
    bool established, ended;       /* ended: an alert was sent or received */
    bool broken;                   /* output was lost */
};

struct nj_shard_tls {
    struct nj_tls_crypto crypto;
    struct nj_pool conns, handshakes;
    struct nj_conn_tls **conn; /* by the index of struct nj_conn */
    uint8_t *expanded;         /* EXPANDED_MAX expanded keys */
    uint32_t n_pending, n_pending_bytes, n_copied;
    bool lost; /* pending bytes could not be sealed */
    struct nj_slice pending[PENDING_PIECES_MAX];
    uint8_t copied[PENDING_COPY_MAX];
    uint8_t scratch[NJ_TLS_OPEN_ROOM];
};

/* --- life --------------------------------------------------------------------------------- */

static void free_all(struct nj_shard_tls *t)
{
    nj_tls_aead_free(t->crypto.aead);
    nj_tls_kdf_free(t->crypto.kdf);
    nj_pool_fini(&t->conns);
    nj_pool_fini(&t->handshakes);
    free(t->conn);
    free(t->expanded);
    explicit_bzero(t, sizeof *t);
    free(t);
}

bool nj__tls_init(struct nj_shard *s)
{
    if (!s->cfg.tls)
        return true;
    struct nj_shard_tls *t = calloc(1, sizeof *t);
    if (!t)
        return false;
    t->crypto = (struct nj_tls_crypto){nj_tls_aead_new(NJ_TLS_ENGINE_AUTO), nj_tls_kdf_new()};
    t->conn = calloc(s->cfg.conns_max, sizeof t->conn[0]);
    if (t->crypto.aead)
        t->expanded = aligned_alloc(NJ_TLS_EXPANDED_ALIGN,
                                    (size_t)EXPANDED_MAX * nj_tls_expanded_bytes(t->crypto.aead));
    if (!t->crypto.aead || !t->crypto.kdf || !t->conn || !t->expanded ||
        !nj_pool_init(&t->conns, sizeof(struct nj_conn_tls), s->cfg.conns_max) ||
        !nj_pool_init(&t->handshakes, sizeof(struct handshake), NJ_TLS_HANDSHAKES_MAX) ||
        !nj_tcp_listen(&s->tcp, s->cfg.tls_port)) {
        free_all(t);
        return false;
    }
    memset(t->expanded, 0, (size_t)EXPANDED_MAX * nj_tls_expanded_bytes(t->crypto.aead));
    s->tls = t;
    return true;
}

void nj__tls_fini(struct nj_shard *s)
{
    if (!s->tls)
        return;
    while (s->tls->handshakes.n_used > 0)
        nj__tls_collect_handshakes(s, s->now); /* workers will return them */
    free_all(s->tls);
    s->tls = NULL;
}

uint32_t nj__tls_n_handshakes(const struct nj_shard *s)
{
    return s->tls ? s->tls->handshakes.n_used : 0;
}

static struct nj_conn_tls **place_of(const struct nj_conn *c)
{
    return &c->shard->tls->conn[nj_pool_index(&c->shard->conns, c)];
}

static struct nj_tls_expanded *expanded_of(const struct nj_conn *c, uint32_t direction)
{
    struct nj_shard_tls *t = c->shard->tls;
    uint32_t at = (2 * nj_pool_index(&c->shard->conns, c) + direction) % EXPANDED_MAX;
    return (void *)(t->expanded + (size_t)at * nj_tls_expanded_bytes(t->crypto.aead));
}

static void free_handshake(struct nj_shard_tls *t, struct handshake *hs)
{
    nj_tls_handshake_free(hs->h);
    if (hs->cert)
        nj_ref_put(&hs->cert->ref);
    nj_pool_put(&t->handshakes, hs);
}

static void leave_handshake(struct nj_shard_tls *t, struct nj_conn_tls *ct)
{
    struct handshake *hs = ct->handshake;

    ct->handshake = NULL;
    if (!hs)
        return;
    hs->conn = NULL;
    if (!hs->runs)
        free_handshake(t, hs);
}

void nj__conn_tls_free(struct nj_conn *c)
{
    struct nj_conn_tls **place = place_of(c);

    if (!*place)
        return;
    leave_handshake(c->shard->tls, *place);
    nj_tls_session_wipe(&(*place)->session);
    if ((*place)->cert)
        nj_ref_put(&(*place)->cert->ref);
    nj_pool_put(&c->shard->tls->conns, *place);
    *place = NULL;
}

/* --- handshakes ---------------------------------------------------------------------------- */

/* An end without an alert: the peer speaks no TLS, or there is no room. */
static void give_up(struct nj_conn *c, enum nj_counter why)
{
    (*place_of(c))->ended = true;
    c->failed = true;
    nj_count(&c->shard->counters, why);
}

static const struct nj_tls_handshake_info *info_of(const struct handshake *hs)
{
    return nj_tls_handshake_info(hs->h);
}

/* A worker. The first task makes the handshake: only workers and a reload use the lock of the
 * current context. */
static void run_handshake(struct nj_task *task)
{
    struct handshake *hs = nj_container_of(task, struct handshake, task);
    uint64_t began = hs->cycles ? hs->cycles() : 0;

    if (!hs->h) {
        struct nj_tls_server_context *context = nj_tls_current_context_take(hs->current);
        hs->h = nj_tls_handshake_new(context);
        nj_tls_server_context_put(context);
    }
    if (hs->h)
        hs->result = nj_tls_handshake_input(hs->h, hs->in, hs->n_in, &hs->n_used);
    if (hs->h && hs->result == NJ_TLS_HANDSHAKE_DONE && info_of(hs)->client_subject[0])
        hs->cert = nj_client_cert_new(info_of(hs)->client_subject);
    hs->n_cycles = hs->cycles ? hs->cycles() - began : 0;
}

/* The workers stop, or another client's handshake displaced it. The lcore calls this, in submit or
 * poll. */
static void reject_handshake(struct nj_task *task)
{
    struct handshake *hs = nj_container_of(task, struct handshake, task);

    hs->runs = false;
    if (!hs->conn) {
        free_handshake(hs->of, hs);
        return;
    }
    give_up(hs->conn, NJ_C_tls_handshakes_full);
    nj__conn_mark_ready(hs->conn);
}

static const struct nj_task_ops handshake_ops = {.run = run_handshake, .reject = reject_handshake};

static struct nj_conn_tls *begin(struct nj_conn *c)
{
    struct nj_shard *s = c->shard;
    struct nj_conn_tls *ct = nj_pool_take(&s->tls->conns);

    NJ_CHECK(ct); /* as many as connections */
    memset(ct, 0, sizeof *ct);
    *place_of(c) = ct;
    struct handshake *hs = nj_pool_take_raw(&s->tls->handshakes);
    if (!hs)
        return ct;
    memset(hs, 0, offsetof(struct handshake, in));
    hs->current = s->cfg.tls;
    hs->cycles = s->cfg.ops.cycles;
    hs->conn = c;
    hs->of = s->tls;
    ct->handshake = hs;
    return ct;
}

/* Bytes of the complete records at the beginning of the input, up to FLIGHT_BYTES_MAX. Negative: a
 * record that cannot be one. */
static int complete_bytes(const struct nj_conn *c)
{
    uint32_t n_input = nj_tcp_recv_bytes(c->tcb), at = 0;
    uint8_t head[NJ_TLS_HEADER_BYTES];

    while (nj_tcp_recv_copy(c->tcb, at, head, sizeof head)) {
        int n = nj_tls_record_size(head, sizeof head);
        if (n < 0)
            return at > 0 ? (int)at : n;
        if (at + (uint32_t)n > n_input || at + (uint32_t)n > FLIGHT_BYTES_MAX)
            break;
        at += (uint32_t)n;
    }
    return (int)at;
}

static void submit_flight(struct nj_conn *c, struct handshake *hs)
{
    const struct nj_worker_ops *workers = &c->shard->cfg.ops.tls_workers;
    int n = complete_bytes(c);

    if (n < 0) {
        give_up(c, NJ_C_tls_failed_message);
        return;
    }
    if (n == 0)
        return;
    nj_tcp_recv_copy(c->tcb, 0, hs->in, (uint32_t)n);
    hs->n_in = (uint32_t)n;
    hs->task = (struct nj_task){.ops = &handshake_ops, .client = c->client};
    nj_list_init(&hs->task.node);
    hs->runs = true;
    if (workers->submit(workers->ctx, &hs->task))
        return;
    hs->runs = false;
    give_up(c, NJ_C_tls_handshakes_full);
}

static void count_handshake(struct nj_counters *n, const struct nj_tls_handshake_info *info)
{
    nj_count(n, info->resumed ? NJ_C_tls_handshakes_resumed : NJ_C_tls_handshakes);
    nj_count(n, info->cipher == NJ_TLS_AES_128_GCM_SHA256   ? NJ_C_tls_aes_128_gcm
                : info->cipher == NJ_TLS_AES_256_GCM_SHA384 ? NJ_C_tls_aes_256_gcm
                                                            : NJ_C_tls_chacha20);
    if (info->client_subject[0])
        nj_count(n, NJ_C_tls_client_certs);
}

/* The secrets of the handshake become the keys of the session. */
static bool establish(struct nj_conn *c, struct nj_conn_tls *ct)
{
    const struct nj_tls_handshake_info *info = nj_tls_handshake_info(ct->handshake->h);
    struct nj_tls_kdf *kdf = c->shard->tls->crypto.kdf;
    struct nj_tls_keys read, write;

    if (info->client_subject[0] && !ct->handshake->cert)
        return false; /* without its subject, a request might get more than it may */
    ct->cert = ct->handshake->cert;
    ct->handshake->cert = NULL;
    bool ok = nj_tls_keys_derive(&read, kdf, info->cipher, info->client_secret) &&
              nj_tls_keys_derive(&write, kdf, info->cipher, info->server_secret);
    if (ok) {
        write.record_number = info->n_server_records;
        nj_tls_session_init(&ct->session, &read, &write, (uint16_t)(info->record_plain_max + 1));
        ct->established = true;
        count_handshake(&c->shard->counters, info);
    }
    nj_tls_keys_wipe(&read);
    nj_tls_keys_wipe(&write);
    return ok;
}

static enum nj_counter failure_counter(enum nj_tls_failure f)
{
    static const enum nj_counter counter[NJ_TLS_N_FAILURES] = {
        [NJ_TLS_FAIL_NONE] = NJ_C_tls_failed_message,
        [NJ_TLS_FAIL_VERSION] = NJ_C_tls_failed_version,
        [NJ_TLS_FAIL_NEGOTIATION] = NJ_C_tls_failed_negotiation,
        [NJ_TLS_FAIL_ALPN] = NJ_C_tls_failed_alpn,
        [NJ_TLS_FAIL_CLIENT_CERT] = NJ_C_tls_failed_client_cert,
        [NJ_TLS_FAIL_ALERT] = NJ_C_tls_failed_alert,
        [NJ_TLS_FAIL_MESSAGE] = NJ_C_tls_failed_message,
        [NJ_TLS_FAIL_MEMORY] = NJ_C_tls_failed_memory,
    };
    return counter[f];
}

/* A worker has processed a flight: its output is sent, and the bytes that it used are taken. */
static void finish_flight(struct nj_conn *c, struct nj_conn_tls *ct)
{
    struct nj_shard *s = c->shard;
    struct handshake *hs = ct->handshake;
    const uint8_t *out;

    hs->finished = false;
    if (!hs->h) {
        give_up(c, NJ_C_tls_failed_memory);
        return;
    }
    uint32_t n_out = nj_tls_handshake_output(hs->h, &out);
    nj_tcp_recv_discard(&s->tcp, c->tcb, hs->n_used);
    if (n_out > 0 &&
        (n_out > nj_tcp_send_room(c->tcb) || !nj_tcp_send_copy(&s->tcp, c->tcb, out, n_out))) {
        give_up(c, NJ_C_tls_failed_memory);
        return;
    }
    switch (hs->result) {
    case NJ_TLS_HANDSHAKE_MORE:
        return;
    case NJ_TLS_HANDSHAKE_DONE:
        if (!establish(c, ct))
            give_up(c, NJ_C_tls_failed_memory);
        break;
    case NJ_TLS_HANDSHAKE_FAILED:
        give_up(c, failure_counter(nj_tls_handshake_failure(hs->h)));
        break;
    }
    leave_handshake(s->tls, ct);
}

uint32_t nj__tls_collect_handshakes(struct nj_shard *s, nj_ns now)
{
    struct nj_task *task[64];
    const struct nj_worker_ops *workers = &s->cfg.ops.tls_workers;

    if (s->tls->handshakes.n_used == 0)
        return 0;
    uint32_t n = workers->poll(workers->ctx, task, NJ_ARRAY_LEN(task));
    for (uint32_t i = 0; i < n; i++) {
        struct handshake *hs = nj_container_of(task[i], struct handshake, task);
        hs->runs = false;
        hs->finished = true;
        nj_count_n(&s->counters, NJ_C_tls_worker_cycles, hs->n_cycles);
        if (hs->conn)
            nj__conn_mark_ready(hs->conn);
        else
            free_handshake(s->tls, hs);
    }
    return n;
}

void nj__tls_wake_workers(struct nj_shard *s)
{
    s->cfg.ops.tls_workers.flush(s->cfg.ops.tls_workers.ctx);
}

const char *nj__conn_tls_suite(const struct nj_conn *c)
{
    return nj_tls_cipher_name((*place_of(c))->session.write.cipher);
}

struct nj_client_cert *nj__conn_tls_cert(const struct nj_conn *c)
{
    return (*place_of(c))->cert;
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

/* Sets c->input_waits. */
static void look_at_input(struct nj_conn *c)
{
    const struct nj_conn_tls *ct = *place_of(c);

    if (c->state == LINGER || (ct && ct->ended)) /* it is discarded */
        c->input_waits = false;
    else if (ct && ct->handshake && (ct->handshake->runs || ct->handshake->finished))
        c->input_waits = !ct->handshake->finished;
    else
        c->input_waits = !has_record(c);
}

static void send_alert(struct nj_conn *c, struct nj_conn_tls *ct, enum nj_tls_alert alert)
{
    struct nj_shard *s = c->shard;
    uint8_t record[NJ_TLS_ALERT_RECORD_BYTES];
    struct nj_tls_dst dst = {record, sizeof record};

    int n = nj_tls_session_write_alert(&ct->session, &s->tls->crypto, expanded_of(c, 1), alert,
                                       &dst, 1);
    if (n > 0 && nj_tcp_send_room(c->tcb) >= (uint32_t)n)
        nj_tcp_send_copy(&s->tcp, c->tcb, record, (uint32_t)n);
}

static void end_by_alert(struct nj_conn *c, struct nj_conn_tls *ct, enum nj_tls_alert alert)
{
    send_alert(c, ct, alert);
    give_up(c, NJ_C_tls_bad_record);
}

static void input_record(struct nj_conn *c, struct nj_conn_tls *ct, uint32_t n, nj_ns now)
{
    struct nj_shard_tls *t = c->shard->tls;
    struct nj_tcp_piece piece[NJ_RECV_MBUFS_MAX];
    struct nj_tls_src src[NJ_RECV_MBUFS_MAX];
    uint32_t n_pieces = nj_tcp_recv_pieces(c->tcb, n, piece, NJ_ARRAY_LEN(piece));

    for (uint32_t i = 0; i < n_pieces; i++)
        src[i] = (struct nj_tls_src){piece[i].p, piece[i].n_bytes};
    struct nj_tls_input in = nj_tls_session_input(&ct->session, &t->crypto, expanded_of(c, 0), src,
                                                  n_pieces, t->scratch, sizeof t->scratch);
    nj_tcp_recv_discard(&c->shard->tcp, c->tcb, n);
    switch (in.kind) {
    case NJ_TLS_IN_NOTHING:
        break;
    case NJ_TLS_IN_KEY_UPDATE:
        nj_count(&c->shard->counters, NJ_C_tls_key_updates);
        break;
    case NJ_TLS_IN_DATA:
        nj_count_n(&c->shard->counters, NJ_C_tls_rx_bytes, in.n_bytes);
        nj_tls_session_forgive(&ct->session);
        nj__conn_input(c, in.data, in.n_bytes, now);
        break;
    case NJ_TLS_IN_CLOSE_NOTIFY:
        c->peer_fin = true;
        break;
    case NJ_TLS_IN_PEER_ALERT:
        ct->ended = true;
        c->failed = true;
        break;
    case NJ_TLS_IN_ERROR:
        end_by_alert(c, ct, in.alert);
        break;
    }
}

static void read_records(struct nj_conn *c, struct nj_conn_tls *ct, nj_ns now)
{
    uint8_t head[NJ_TLS_HEADER_BYTES];

    while (!ct->ended && nj__conn_may_read(c) && nj_tcp_recv_copy(c->tcb, 0, head, sizeof head)) {
        int n = nj_tls_record_size(head, sizeof head);
        if (n < 0)
            end_by_alert(c, ct, (enum nj_tls_alert) - n);
        else if ((uint32_t)n > nj_tcp_recv_bytes(c->tcb))
            return;
        else
            input_record(c, ct, (uint32_t)n, now);
    }
}

static void read_all(struct nj_conn *c, struct nj_conn_tls *ct, nj_ns now)
{
    if (ct->handshake && ct->handshake->finished)
        finish_flight(c, ct);
    if (ct->handshake && !ct->handshake->runs && !ct->ended)
        submit_flight(c, ct->handshake);
    if (ct->established)
        read_records(c, ct, now);
    if (ct->ended || c->state == LINGER)
        nj_tcp_recv_discard(&c->shard->tcp, c->tcb, nj_tcp_recv_bytes(c->tcb));
}

bool nj__conn_tls_read(struct nj_conn *c, nj_ns now)
{
    struct nj_conn_tls *ct = *place_of(c);

    look_at_input(c);
    if (!nj__conn_has_input(c))
        return false;
    if (!ct && !(ct = begin(c))->handshake)
        give_up(c, NJ_C_tls_handshakes_full);
    else
        read_all(c, ct, now);
    look_at_input(c);
    return true;
}

void nj__conn_tls_close(struct nj_conn *c)
{
    struct nj_conn_tls *ct = *place_of(c);

    if (ct && ct->established && !ct->broken && !nj_tls_session_is_write_closed(&ct->session))
        send_alert(c, ct, NJ_TLS_CLOSE_NOTIFY);
}

/* --- output -------------------------------------------------------------------------------- */

static uint32_t record_max(const struct nj_conn *c)
{
    return c->tcb->cwnd < BULK_CWND ? c->tcb->snd_mss - NJ_TLS_RECORD_OVERHEAD : NJ_TLS_CONTENT_MAX;
}

uint32_t nj__conn_tls_room(const struct nj_conn *c, uint32_t tcp_room)
{
    const struct nj_shard_tls *t = c->shard->tls;
    const struct nj_conn_tls *ct = *place_of(c);
    uint32_t room =
        ct->broken ? 0 : nj_tls_session_content_that_fits(&ct->session, tcp_room, record_max(c));

    return room > t->n_pending_bytes ? room - t->n_pending_bytes : 0;
}

/* Seals `n` pieces, at most NJ_TLS_CONTENT_MAX bytes in all. */
static bool seal(struct nj_conn *c, struct nj_conn_tls *ct, const struct nj_tls_src *src,
                 uint32_t n, uint32_t n_bytes)
{
    struct nj_shard *s = c->shard;
    struct nj_tcp_piece piece[NJ_TCP_PIECES_MAX];
    struct nj_tls_dst dst[NJ_TCP_PIECES_MAX];
    uint32_t n_out = nj_tls_session_sealed_bytes(&ct->session, n_bytes, record_max(c));
    uint32_t n_pieces =
        n_out <= NJ_TCP_RESERVE_MAX ? nj_tcp_send_reserve(&s->tcp, c->tcb, n_out, piece) : 0;

    for (uint32_t i = 0; i < n_pieces; i++)
        dst[i] = (struct nj_tls_dst){piece[i].p, piece[i].n_bytes};
    if (n_pieces > 0)
        nj_count_n(&s->counters, NJ_C_tls_tx_bytes, n_bytes);
    return n_pieces > 0 && nj_tls_session_seal(&ct->session, &s->tls->crypto, expanded_of(c, 1),
                                               record_max(c), src, n, dst, n_pieces) > 0;
}

/* Seals what is pending and releases its references. */
bool nj__conn_tls_flush(struct nj_conn *c)
{
    struct nj_shard_tls *t = c->shard->tls;
    struct nj_conn_tls *ct = *place_of(c);
    struct nj_tls_src src[PENDING_PIECES_MAX];
    bool ok = !t->lost && !ct->broken;

    for (uint32_t i = 0; i < t->n_pending; i++)
        src[i] = (struct nj_tls_src){t->pending[i].data, t->pending[i].n_bytes};
    if (t->n_pending > 0 && ok)
        ok = seal(c, ct, src, t->n_pending, t->n_pending_bytes);
    for (uint32_t i = 0; i < t->n_pending; i++)
        if (t->pending[i].ref)
            nj_ref_put(t->pending[i].ref);
    t->n_pending = t->n_pending_bytes = t->n_copied = 0;
    t->lost = false;
    if (!ok && !ct->broken)
        nj_count(&c->shard->counters, NJ_C_tls_no_mbuf);
    ct->broken |= !ok;
    return ok;
}

bool nj__conn_tls_is_broken(const struct nj_conn *c)
{
    const struct nj_conn_tls *ct = *place_of(c);
    return ct && ct->broken;
}

/* Room for a piece, after the pending ones were sealed if need be. Short records have more
 * overhead, and TCP takes NJ_TCP_RESERVE_MAX bytes at once. */
static uint32_t pending_room(struct nj_conn *c)
{
    struct nj_shard_tls *t = c->shard->tls;
    uint32_t n_max = nj_min_u32(
        NJ_TLS_CONTENT_MAX, nj_tls_session_content_that_fits(&(*place_of(c))->session,
                                                             NJ_TCP_RESERVE_MAX, record_max(c)));

    if ((t->n_pending == PENDING_PIECES_MAX || t->n_pending_bytes >= n_max) &&
        !nj__conn_tls_flush(c))
        t->lost = true;
    return n_max - t->n_pending_bytes;
}

static void add_pending(struct nj_shard_tls *t, const uint8_t *data, uint32_t n, struct nj_ref *ref)
{
    t->pending[t->n_pending++] = (struct nj_slice){.data = data, .n_bytes = n, .ref = ref};
    t->n_pending_bytes += n;
}

bool nj__conn_tls_copy(struct nj_conn *c, const uint8_t *data, uint32_t n_bytes)
{
    struct nj_shard_tls *t = c->shard->tls;

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

bool nj__conn_tls_refer(struct nj_conn *c, const struct nj_slice *slice)
{
    struct nj_shard_tls *t = c->shard->tls;

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
