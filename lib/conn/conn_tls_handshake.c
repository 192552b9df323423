/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handshakes of a shard's connections. Follows RFC 8446 2 and 4.
 *
 * A handshake costs some 200 us, so workers run it, one flight at a time. Its input stays in the
 * receive queue until the worker has said how much of it belongs to the handshake. Workers also
 * free what libssl has allocated.
 */
#include <string.h>

#include "conn/abuse_reason_counts.h"
#include "conn/conn_tls_internal.h"
#include "http/client_cert.h"
#include "telem/counters_conn.h"
#include "tls/handshake.h"

/* Input of one flight of the client. A certificate chain of a client is longer than any
 * ClientHello. */
#define FLIGHT_BYTES_MAX 32768u
/* The part of the places for handshakes that have ended and whose memory workers free. */
#define FREEING_PART     16u
/* Flights of workers that one step takes: some 3 us each on the lcore. */
#define FINISHED_MAX     16u

struct nj__handshake {
    struct nj_task task;
    struct nj_conn *conn; /* NULL: it has gone */
    struct nj_conns_tls *of;
    struct nj_list waits; /* for bytes of the client, in the order of their beginning to wait */
    struct nj_tls_current_context *current;
    struct nj_tls_handshake *h;  /* made by the first task; NULL: no memory */
    struct nj_client_cert *cert; /* NULL: none, or no memory for it */
    uint32_t *n_of_client;       /* where it is counted; NULL: of a trusted proxy */
    enum nj_tls_handshake_result result;
    nj_ns began;
    bool runs;      /* a worker has it */
    bool abandoned; /* the worker is to free what it has made */
    bool finished;  /* its result waits for the connection's turn */
    uint32_t n_in, n_used;
    uint8_t in[FLIGHT_BYTES_MAX];
};

static void run_handshake(struct nj_task *task);
static void reject_handshake(struct nj_task *task);
static const struct nj_task_ops handshake_ops = {.run = run_handshake, .reject = reject_handshake};

/* --- cycles of the lcore in handshakes ------------------------------------------------------ */

static uint64_t cycles_of(const struct nj_conns *cs)
{
    return cs->cfg->ops.cycles ? cs->cfg->ops.cycles() : 0;
}

static void note_cycles(struct nj_conns *cs, uint64_t began)
{
    cs->tls->step_cycles += cycles_of(cs) - began;
}

/* A new step begins. */
static void end_last_step(struct nj_conns *cs)
{
    if (nj_likely(cs->tls->step_cycles == 0))
        return;
    nj_histogram_add(&cs->tls_step_cycles, cs->tls->step_cycles);
    cs->tls->step_cycles = 0;
}

/* --- life --------------------------------------------------------------------------------- */

static void end_wait(struct nj__handshake *hs)
{
    if (nj_list_linked(&hs->waits))
        nj_list_del(&hs->waits);
}

/* Clients take turns, and the one with most tasks loses first. Trusted proxies serve many clients.
 */
static const void *turn_of(const struct nj__handshake *hs)
{
    return hs->n_of_client ? (const void *)hs->n_of_client : hs;
}

void nj__conn_tls_give_up(struct nj_conn *c, nj_counter why)
{
    (*nj__conn_tls_place(c))->ended = true;
    c->failed = true;
    nj__abuse_record(c->conns, why, nj__conn_remote(c));
}

static bool submit(struct nj_conns *cs, struct nj__handshake *hs)
{
    const struct nj_worker_ops *workers = &cs->cfg->ops.tls_workers;

    end_wait(hs);
    hs->task = (struct nj_task){.ops = &handshake_ops, .client = turn_of(hs)};
    nj_list_init(&hs->task.node);
    hs->runs = true;
    hs->runs = workers->submit(workers->ctx, &hs->task);
    cs->tls->unflushed |= hs->runs;
    return hs->runs;
}

/* Takes it back from the workers' queue. False: a worker has it. */
static bool withdraw(struct nj_conns *cs, struct nj__handshake *hs)
{
    const struct nj_worker_ops *workers = &cs->cfg->ops.tls_workers;

    hs->runs = !workers->withdraw || !workers->withdraw(workers->ctx, &hs->task);
    return !hs->runs;
}

static void free_handshake(struct nj_conns_tls *t, struct nj__handshake *hs)
{
    end_wait(hs);
    nj_tls_handshake_free(hs->h);
    if (hs->cert)
        nj_ref_put(&hs->cert->ref);
    if (hs->n_of_client)
        --*hs->n_of_client;
    nj_pool_put(&t->handshakes, hs);
}

static void leave(struct nj_conns *cs, struct nj_conn_tls *ct)
{
    struct nj__handshake *hs = ct->handshake;

    ct->handshake = NULL;
    hs->conn = NULL;
    if (hs->runs && !withdraw(cs, hs))
        return;
    hs->abandoned = hs->h && !nj_tls_handshake_is_released(hs->h);
    if (!hs->abandoned || !submit(cs, hs))
        free_handshake(cs->tls, hs);
}

void nj__handshake_leave(struct nj_conns *cs, struct nj_conn_tls *ct)
{
    uint64_t began = cycles_of(cs);

    leave(cs, ct);
    note_cycles(cs, began);
}

/* Few places are left: the handshake that has waited longest for its client ends. Its place is free
 * when a worker has freed its memory, so some places are kept for that time. */
static void make_room(struct nj_conns *cs)
{
    const struct nj_pool *p = &cs->tls->handshakes;

    if (p->n_used < p->n_max - p->n_max / FREEING_PART || nj_list_empty(&cs->tls->waiting))
        return;
    struct nj__handshake *hs = nj_container_of(cs->tls->waiting.next, struct nj__handshake, waits);
    struct nj_conn *c = hs->conn;
    nj__conn_tls_give_up(c, NJ_C_tls_handshakes_full);
    leave(cs, *nj__conn_tls_place(c));
    nj__conn_mark_ready(c);
}

/* The counter of the connection's client, or NULL if it is a trusted proxy. */
static uint32_t *count_of_client(const struct nj_conn *c)
{
    struct nj_conns *cs = c->conns;
    const struct nj_addr *remote = nj__conn_remote(c);

    if (nj__is_trusted_proxy(cs, remote))
        return NULL;
    return &cs->tls->n_of_client[nj__client_key(cs, remote) % CLIENTS];
}

/* A client may have as many handshakes as there are free places, so that k clients at their bound
 * leave 1 / (k + 1) of the places to others. Returns NULL if there is no place. */
/* Held: TLS handshakes | client, in handshakes | the number of free places; an lcore has 1,024 |
 * `--preface-timeout` | tls_handshakes_full, conn_timeout */
static struct nj__handshake *take_handshake(struct nj_conns *cs, uint32_t *n_of_client)
{
    struct nj_conns_tls *t = cs->tls;

    if (n_of_client && *n_of_client >= t->handshakes.n_max - t->handshakes.n_used)
        return NULL;
    make_room(cs);
    struct nj__handshake *hs = nj_pool_take_raw(&t->handshakes);
    if (!hs)
        return NULL;
    memset(hs, 0, offsetof(struct nj__handshake, in));
    hs->n_of_client = n_of_client;
    if (n_of_client)
        ++*n_of_client;
    return hs;
}

void nj__handshake_begin(struct nj_conn *c, struct nj_conn_tls *ct)
{
    struct nj_conns *cs = c->conns;
    struct nj__handshake *hs = take_handshake(cs, count_of_client(c));

    if (!hs)
        return;
    hs->current = cs->cfg->tls;
    hs->conn = c;
    hs->began = cs->now;
    hs->of = cs->tls;
    nj_list_init(&hs->waits);
    ct->handshake = hs;
}

bool nj__handshakes_init(struct nj_conns_tls *t, uint32_t conns_max)
{
    nj_list_init(&t->waiting);
    return nj_pool_init(&t->handshakes, sizeof(struct nj__handshake),
                        nj_min_u32(NJ_TLS_HANDSHAKES_MAX, conns_max));
}

bool nj__handshake_runs(const struct nj_conn_tls *ct)
{
    return ct->handshake && ct->handshake->runs;
}

bool nj__handshake_is_finished(const struct nj_conn_tls *ct)
{
    return ct->handshake && ct->handshake->finished;
}

/* --- on workers ----------------------------------------------------------------------------- */

static const struct nj_tls_handshake_info *info_of(const struct nj__handshake *hs)
{
    return nj_tls_handshake_info(hs->h);
}

/* The first task makes the handshake: only workers and a reload use the lock of the current
 * context. */
static void make_and_run(struct nj__handshake *hs)
{
    if (!hs->h) {
        struct nj_tls_server_context *context = nj_tls_current_context_take(hs->current);
        hs->h = nj_tls_handshake_new(context);
        nj_tls_server_context_put(context);
    }
    if (!hs->h)
        return;
    hs->result = nj_tls_handshake_input(hs->h, hs->in, hs->n_in, &hs->n_used);
    if (hs->result == NJ_TLS_HANDSHAKE_MORE)
        return;
    if (hs->result == NJ_TLS_HANDSHAKE_DONE)
        hs->result = nj_tls_handshake_recheck(hs->h, hs->current);
    if (hs->result == NJ_TLS_HANDSHAKE_DONE && info_of(hs)->has_client_cert)
        hs->cert = nj_client_cert_new(info_of(hs)->client_subject);
    nj_tls_handshake_release(hs->h);
}

/* A worker. */
static void run_handshake(struct nj_task *task)
{
    struct nj__handshake *hs = nj_container_of(task, struct nj__handshake, task);

    if (hs->abandoned)
        nj_tls_handshake_release(hs->h);
    else
        make_and_run(hs);
}

/* --- flights -------------------------------------------------------------------------------- */

/* The workers stop, or another client's handshake displaced it. The lcore calls this, in submit or
 * poll. */
static void reject_handshake(struct nj_task *task)
{
    struct nj__handshake *hs = nj_container_of(task, struct nj__handshake, task);

    hs->runs = false;
    if (!hs->conn) {
        free_handshake(hs->of, hs);
        return;
    }
    nj__conn_tls_give_up(hs->conn, NJ_C_tls_handshakes_full);
    nj__conn_mark_ready(hs->conn);
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

/* Costs no worker time. */
static void refuse_first_record(struct nj_conn *c, enum nj_tls_alert alert)
{
    uint8_t record[NJ_TLS_PLAIN_ALERT_BYTES];

    nj_tls_plain_alert(alert, record);
    nj_tcp_send_copy(c->conns->tcp, c->tcb, record, sizeof record);
    nj__conn_tls_give_up(c, NJ_C_tls_failed_message);
}

static void submit_flight(struct nj_conn *c, struct nj__handshake *hs)
{
    int n = complete_bytes(c);

    if (n < 0 && !hs->h) {
        refuse_first_record(c, (enum nj_tls_alert) - n);
        return;
    }
    if (n < 0) /* the keys of its alert are with libssl */
        n = NJ_TLS_HEADER_BYTES;
    if (n == 0)
        return;
    nj_tcp_recv_copy(c->tcb, 0, hs->in, (uint32_t)n);
    hs->n_in = (uint32_t)n;
    if (!submit(c->conns, hs))
        nj__conn_tls_give_up(c, NJ_C_tls_handshakes_full);
}

static void count_handshake(struct nj_conns *cs, const struct nj__handshake *hs)
{
    struct nj_counters *n = cs->counters;
    const struct nj_tls_handshake_info *info = nj_tls_handshake_info(hs->h);

    nj_histogram_add(&cs->tls_handshake_ns, cs->now - hs->began);
    nj_count(n, info->resumed ? NJ_C_tls_handshakes_resumed : NJ_C_tls_handshakes);
    nj_count(n, info->cipher == NJ_TLS_AES_128_GCM_SHA256   ? NJ_C_tls_aes_128_gcm
                : info->cipher == NJ_TLS_AES_256_GCM_SHA384 ? NJ_C_tls_aes_256_gcm
                                                            : NJ_C_tls_chacha20);
    if (info->has_client_cert)
        nj_count(n, NJ_C_tls_client_certs);
}

/* The secrets of the handshake become the keys of the session. */
static bool establish(struct nj_conn *c, struct nj_conn_tls *ct)
{
    const struct nj_tls_handshake_info *info = nj_tls_handshake_info(ct->handshake->h);
    struct nj_tls_kdf *kdf = c->conns->tls->crypto.kdf;
    struct nj_tls_keys read, write;

    if (info->has_client_cert && !ct->handshake->cert)
        return false; /* without its subject, a request might get more than it may */
    ct->cert = ct->handshake->cert;
    ct->handshake->cert = NULL;
    bool ok = nj_tls_keys_derive(&read, kdf, info->cipher, info->client_secret) &&
              nj_tls_keys_derive(&write, kdf, info->cipher, info->server_secret);
    if (ok) {
        write.record_number = info->n_server_records;
        nj_tls_session_init(&ct->session, &read, &write, (uint16_t)(info->record_plain_max + 1));
        ct->established = true;
        ct->http1 = info->protocol == NJ_TLS_HTTP1;
        ct->identity = info->identity;
        count_handshake(c->conns, ct->handshake);
    }
    nj_tls_keys_wipe(&read);
    nj_tls_keys_wipe(&write);
    return ok;
}

static nj_counter failure_counter(enum nj_tls_failure f)
{
    static const nj_counter counter[NJ_TLS_N_FAILURES] = {
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
    struct nj_conns *cs = c->conns;
    struct nj__handshake *hs = ct->handshake;
    const uint8_t *out;

    hs->finished = false;
    if (!hs->h) {
        nj__conn_tls_give_up(c, NJ_C_tls_failed_memory);
        return;
    }
    uint32_t n_out = nj_tls_handshake_output(hs->h, &out);
    nj_tcp_recv_discard(cs->tcp, c->tcb, hs->n_used);
    if (n_out > 0 &&
        (n_out > nj_tcp_send_room(c->tcb) || !nj_tcp_send_copy(cs->tcp, c->tcb, out, n_out))) {
        nj__conn_tls_give_up(c, NJ_C_tls_failed_memory);
        return;
    }
    switch (hs->result) {
    case NJ_TLS_HANDSHAKE_MORE:
        return;
    case NJ_TLS_HANDSHAKE_DONE:
        if (!establish(c, ct))
            nj__conn_tls_give_up(c, NJ_C_tls_failed_memory);
        break;
    case NJ_TLS_HANDSHAKE_FAILED:
        nj__conn_tls_give_up(c, failure_counter(nj_tls_handshake_failure(hs->h)));
        break;
    }
    leave(cs, ct);
}

void nj__tls_collect_handshakes(struct nj_conns *cs)
{
    struct nj_task *task[FINISHED_MAX];
    const struct nj_worker_ops *workers = &cs->cfg->ops.tls_workers;

    end_last_step(cs);
    if (cs->tls->handshakes.n_used == 0)
        return;
    uint64_t began = cycles_of(cs);
    uint32_t n = workers->poll(workers->ctx, task, NJ_ARRAY_LEN(task));
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        struct nj__handshake *hs = nj_container_of(task[i], struct nj__handshake, task);
        hs->runs = false;
        hs->finished = true;
        nj_histogram_add(&cs->tls_task_ns, task[i]->run_ns);
        if (hs->conn)
            nj__conn_mark_ready(hs->conn);
        else
            free_handshake(cs->tls, hs);
    }
    note_cycles(cs, began);
}

void nj__tls_wake_workers(struct nj_conns *cs)
{
    if (!cs->tls->unflushed)
        return;
    cs->tls->unflushed = false;
    uint64_t began = cycles_of(cs);
    cs->cfg->ops.tls_workers.flush(cs->cfg->ops.tls_workers.ctx);
    note_cycles(cs, began);
}

void nj__handshake_advance(struct nj_conn *c, struct nj_conn_tls *ct)
{
    uint64_t began = cycles_of(c->conns);

    if (ct->handshake->finished)
        finish_flight(c, ct);
    if (ct->handshake && !ct->handshake->runs && !ct->ended)
        submit_flight(c, ct->handshake);
    if (ct->handshake && !ct->handshake->runs && !nj_list_linked(&ct->handshake->waits))
        nj_list_push_back(&c->conns->tls->waiting, &ct->handshake->waits);
    note_cycles(c->conns, began);
}
