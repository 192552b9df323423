/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of running transfers, why each is not faster, and their end. Contract: transfers.h. */
#include "conn/transfers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "conn/conn.h"
#include "conn/conn_life.h"
#include "conn/transfers_internal.h"
#include "http/handlers/exchange.h"

static const struct {
    const char *name, *meaning;
} whys[NJ_N_WHYS] = {
#define NJ_WHY(NAME, text, what) [NJ_WHY_##NAME] = {text, what},
#include "conn/why.def"
#undef NJ_WHY
};

const char *nj_why_name(enum nj_why why)
{
    return whys[why].name;
}

const char *nj_why_meaning(enum nj_why why)
{
    return whys[why].meaning;
}

/* --- ids ------------------------------------------------------------------------------------- */

const char *nj_transfer_id_format(const struct nj_transfer_id *id,
                                  char out[NJ_TRANSFER_ID_TEXT_BYTES])
{
    snprintf(out, NJ_TRANSFER_ID_TEXT_BYTES, "%" PRIu32 "-%" PRIu32 "-%" PRIu32 "-%" PRIu32,
             id->shard, id->place, (uint32_t)(id->txn >> 32), (uint32_t)id->txn);
    return out;
}

/* Reads a decimal number below 2^32, and moves `text` behind it. */
static bool read_u32(struct nj_str *text, uint32_t *out)
{
    uint64_t value = 0;
    uint32_t n = 0;

    for (; n < text->n_bytes && text->p[n] >= '0' && text->p[n] <= '9' && n < 10; n++)
        value = 10 * value + (uint64_t)(text->p[n] - '0');
    nj_str_skip(text, n);
    *out = (uint32_t)value;
    return n > 0 && value <= UINT32_MAX;
}

bool nj_transfer_id_parse(const char *text, size_t n_bytes, struct nj_transfer_id *out)
{
    struct nj_str rest = {text, (uint32_t)n_bytes};
    uint32_t part[4];

    if (n_bytes >= NJ_TRANSFER_ID_TEXT_BYTES)
        return false;
    for (uint32_t i = 0; i < NJ_ARRAY_LEN(part); i++) {
        if (i > 0 && (rest.n_bytes == 0 || rest.p[0] != '-'))
            return false;
        nj_str_skip(&rest, i > 0);
        if (!read_u32(&rest, &part[i]))
            return false;
    }
    *out = (struct nj_transfer_id){part[0], part[1], nj_txn_id_of(part[2], part[3])};
    return rest.n_bytes == 0;
}

/* --- the reason ------------------------------------------------------------------------------ */

/* Bytes wait in TCP's send queue. */
static enum nj_why why_of_tcp(const struct nj_txn *t)
{
    switch (nj_tcp_limited_by(nj__conn_of(t)->tcb)) {
    case NJ_TCP_LIMIT_CWND:
        return NJ_WHY_CWND;
    case NJ_TCP_LIMIT_PEER:
        return NJ_WHY_RECEIVER;
    case NJ_TCP_LIMIT_NONE:
        break;
    }
    return NJ_WHY_NONE;
}

static enum nj_why why_of_rate(const struct nj_txn *t)
{
    static const enum nj_why by_limiter[] = {
        [NJ_PACED_BY_NOTHING] = NJ_WHY_NONE,
        [NJ_PACED_BY_CLASS] = NJ_WHY_CLASS,
        [NJ_PACED_BY_CLIENT] = NJ_WHY_CLIENT,
        [NJ_PACED_BY_SERVER] = NJ_WHY_SERVER,
    };
    return t->admitted ? by_limiter[nj_paced_limited_by(&t->paced)] : NJ_WHY_NONE;
}

/* The response has no bytes to send: the reason is in its file or in its handler. */
static enum nj_why why_of_source(const struct nj_txn *t)
{
    const struct nj_exchange *x = t->exchange;

    if (!x)
        return t->head_sent_at || t->wait ? NJ_WHY_DISK : NJ_WHY_NONE;
    if (t->wait || nj_exchange_sends_file(x))
        return NJ_WHY_DISK;
    if (nj_exchange_is_on_worker(x))
        return NJ_WHY_WORKER;
    if (!t->request_whole && !nj_exchange_waits_for_handler(x))
        return NJ_WHY_REQUEST;
    return NJ_WHY_HANDLER;
}

/* A rate comes first: a response asks for credit only when TCP has room. Then what TCP has not sent
 * yet, since neither new bytes nor new windows would make it faster; then what HTTP waits for. */
enum nj_why nj__transfer_why(const struct nj_txn *t)
{
    enum nj_why why;

    if (!t->head_sent_at)
        return why_of_source(t);
    if ((why = why_of_rate(t)) != NJ_WHY_NONE || (why = why_of_tcp(t)) != NJ_WHY_NONE)
        return why;
    switch (t->framing->blocked_by(t->stream)) {
    case NJ_BLOCKED_BY_BODY:
        return why_of_source(t);
    case NJ_BLOCKED_BY_STREAM_WINDOW:
    case NJ_BLOCKED_BY_CONN_WINDOW:
        return NJ_WHY_H2_WINDOW;
    case NJ_BLOCKED_BY_NOTHING:
        break;
    }
    return NJ_WHY_NONE;
}

/* --- places ---------------------------------------------------------------------------------- */

/* The open request at a place; NULL: there is none, or it is about to end, as one that was reset.
 */
struct nj_txn *nj__transfer_running_at(const struct nj_conns *cs, uint32_t place)
{
    const struct nj_pool *pool = &cs->txns.pool;

    if (place >= pool->n_touched)
        return NULL;
    struct nj_txn *t = nj_pool_at(pool, place);
    bool is_open = t->set == &cs->txns && t->stream && nj_list_linked(&nj__conn_of(t)->node);
    return is_open && !t->framing->is_reset(t->stream) ? t : NULL;
}

/* The request after *at, among the next places of a part. *n_left counts those. */
static struct nj_txn *next_running(const struct nj_conns *cs, uint32_t *at, uint32_t *n_left)
{
    while (*n_left > 0 && *at < cs->txns.pool.n_touched) {
        struct nj_txn *t = nj__transfer_running_at(cs, (*at)++);
        (*n_left)--;
        if (t)
            return t;
    }
    return NULL;
}

static bool is_of(const struct nj_txn *t, const struct nj_net *net)
{
    return nj_net_has(net, &t->client_addr) || nj_net_has(net, &t->remote);
}

/* --- snapshots ------------------------------------------------------------------------------- */

struct nj_str nj__transfer_path_without_query(struct nj_str path)
{
    const char *mark = path.n_bytes > 0 ? memchr(path.p, '?', path.n_bytes) : NULL;

    if (mark)
        path.n_bytes = (uint32_t)(mark - path.p);
    return path;
}

void nj__transfer_set_path(const struct nj_txn *t, struct nj_transfer *out)
{
    const struct nj_access_record *r = t->access;
    const struct nj_txn_path *kept = nj_txn_kept_path(t);
    struct nj_str path = nj_file_server_waited_path(t);
    bool is_cut = false, has_slash = true;

    if (r) {
        const struct nj_str sent = {r->text + r->n_method, r->n_path};
        path = nj__transfer_path_without_query(sent);
        is_cut = path.n_bytes == sent.n_bytes && r->n_method + r->n_path == sizeof r->text;
    } else if (t->exchange) {
        path = nj_exchange_request_path(t->exchange);
    } else if (kept) {
        path = (struct nj_str){kept->text, kept->n_bytes};
        is_cut = kept->is_cut;
    } else {
        has_slash = path.n_bytes == 0 || path.p[0] == '/';
    }
    out->path[0] = '/';
    uint32_t at = !has_slash, n = nj_min_u32(path.n_bytes, NJ_TRANSFER_PATH_BYTES - at);
    if (n > 0)
        memcpy(out->path + at, path.p, n);
    out->n_path = (uint8_t)(at + n);
    out->is_path_cut = is_cut || n < path.n_bytes;
}

/* The body of a response that has not begun is not known. */
static uint64_t bytes_left(const struct nj_txn *t)
{
    if (!t->head_sent_at)
        return NJ_BODY_LEN_UNKNOWN;
    return t->admitted ? nj_paced_bytes_left(&t->paced) : 0;
}

static void describe(const struct nj_conns *cs, const struct nj_txn *t, nj_ns now,
                     struct nj_transfer *out)
{
    const struct nj_conn *c = nj__conn_of(t);

    *out = (struct nj_transfer){
        .id = {cs->cfg->number, nj_pool_index(&cs->txns.pool, t), nj_txn_id(t)},
        .client = t->client_addr,
        .remote = t->remote,
        .rport = t->rport,
        .status = t->status,
        .method = t->method,
        .why = (uint8_t)nj__transfer_why(t),
        .is_h2 = c->state == NJ_CONN_H2,
        .is_tls = c->is_tls,
        .n_done = t->admitted ? t->paced.n_bytes : 0,
        .n_left = bytes_left(t),
        .age = now - t->arrived_at,
        .throttled = t->admitted ? t->paced.throttled_ns : 0,
    };
    if (t->admitted)
        memcpy(out->class_of, nj_paced_class(&t->paced)->name, sizeof out->class_of);
    nj__transfer_set_path(t, out);
}

static bool is_in_class(const struct nj_txn *t, const char *name)
{
    return name[0] == '\0' || (t->admitted && strcmp(nj_paced_class(&t->paced)->name, name) == 0);
}

static bool run_snapshot(struct nj_command *command, void *conns, nj_ns now)
{
    struct nj_transfers_command *c = nj_container_of(command, struct nj_transfers_command, command);
    const struct nj_conns *cs = conns;
    uint32_t n_left = NJ_TRANSFERS_SLICE;
    struct nj_txn *t;

    if (!nj_shape_is_migrated(cs->txns.shape)) /* soon */
        return false;
    while ((t = next_running(cs, &c->at, &n_left))) {
        if (!is_of(t, &c->of) || !is_in_class(t, c->class_of))
            continue;
        c->n_found++;
        if (c->n < c->n_max)
            describe(cs, t, now, &c->out[c->n++]);
    }
    c->taken_at = now;
    return c->at >= cs->txns.pool.n_touched;
}

void nj_transfers_begin(struct nj_transfers_command *c)
{
    c->command.run = run_snapshot;
    c->n = c->n_found = c->at = 0;
    c->taken_at = 0;
}

/* --- the end --------------------------------------------------------------------------------- */

/* RST_STREAM does not leave while the peer does not read: then the connection is reset, unless it
 * has other requests. */
static void end(struct nj_txn *t, nj_ns now)
{
    struct nj_conn *c = nj__conn_of(t);
    bool is_stalled = nj_tcp_limited_by(c->tcb) != NJ_TCP_LIMIT_NONE;

    if (c->state == NJ_CONN_H1 || (is_stalled && t->framing->is_alone(t->stream))) {
        nj__conn_reset(c, now);
        return;
    }
    t->framing->reset(t->stream, NJ_RESET_CANCEL);
    nj__conn_mark_ready(c);
}

static bool run_end(struct nj_command *command, void *conns, nj_ns now)
{
    struct nj_transfer_end_command *c =
        nj_container_of(command, struct nj_transfer_end_command, command);
    const struct nj_conns *cs = conns;
    struct nj_txn *t =
        c->id.shard == cs->cfg->number ? nj__transfer_running_at(cs, c->id.place) : NULL;

    c->was_running = t && nj_txn_id(t) == c->id.txn;
    if (c->was_running)
        end(t, now);
    return true;
}

void nj_transfer_end_begin(struct nj_transfer_end_command *c)
{
    c->command.run = run_end;
    c->was_running = false;
}

static bool run_network_end(struct nj_command *command, void *conns, nj_ns now)
{
    struct nj_network_end_command *c =
        nj_container_of(command, struct nj_network_end_command, command);
    const struct nj_conns *cs = conns;
    uint32_t n_left = NJ_TRANSFERS_SLICE;
    struct nj_txn *t;

    while ((t = next_running(cs, &c->at, &n_left))) {
        if (!is_of(t, &c->of))
            continue;
        end(t, now);
        c->n_ended++;
    }
    return c->at >= cs->txns.pool.n_touched;
}

void nj_network_end_begin(struct nj_network_end_command *c)
{
    c->command.run = run_network_end;
    c->n_ended = c->at = 0;
}
