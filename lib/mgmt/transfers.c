/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends commands to lcores, and collects what they answer. Contract: transfers.h. */
#include "mgmt/transfers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/limits.h"
#include "base/page_alloc.h"
#include "dpdk/wakeup.h"
#include "log/address_text.h"
#include "log/log.h"
#include "mgmt/transfer_rates.h"
#include "threads/os_clock.h"

#define POLL        (200 * NJ_US) /* between two looks at the answers */
/* For an lcore that has not answered the question before: it may be stuck, and others wait. */
#define GRACE       (20 * NJ_MS)
/* A list that came late is an answer to the same question for so long after it was asked. */
#define LIST_LIFE   (3 * NJ_SEC)
#define LISTED_MAX  16384u /* transfers of one lcore that are compared */
#define LISTED_KEPT 1024u  /* for more of them, the memory is given back after an answer */

enum kind { LIST, END, NETWORK_END, N_KINDS };

/* The commands of one lcore. Each is used for one question at a time. */
struct lcore {
    struct nj_mgmt_lcore to;
    struct nj_transfers_command list;
    struct nj_transfer_end_command end;
    struct nj_network_end_command network_end;
    bool is_out[N_KINDS];  /* put, and not seen to be done since */
    bool is_late[N_KINDS]; /* its question ended before its answer came, which nobody has taken */
    nj_ns listed_at;       /* when the list was asked for */
    bool has_room;         /* list.out is mapped, for LISTED_MAX entries */
};

struct nj_mgmt_transfers {
    pthread_mutex_t lock;
    struct nj_transfer_rates *rates;
    uint32_t n;
    struct lcore lcore[];
};

/* What is asked of one lcore. `prepare` returns false if it cannot be asked. */
struct question {
    enum kind kind;
    bool (*prepare)(struct lcore *l, const void *arg);
    const void *arg;
};

static nj_ns now_ns(void)
{
    return nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
}

struct nj_mgmt_transfers *nj_mgmt_transfers_new(const struct nj_mgmt_lcore *lcores, uint32_t n)
{
    struct nj_mgmt_transfers *m = calloc(1, sizeof *m + n * sizeof m->lcore[0]);

    if (!m)
        return NULL;
    m->rates = nj_transfer_rates_new();
    if (!m->rates) {
        free(m);
        return NULL;
    }
    pthread_mutex_init(&m->lock, NULL);
    m->n = n;
    for (uint32_t i = 0; i < n; i++)
        m->lcore[i].to = lcores[i];
    return m;
}

static void unmap_room(struct lcore *l)
{
    if (l->has_room)
        nj_pages_unmap(l->list.out, LISTED_MAX * sizeof *l->list.out);
    l->has_room = false;
    l->list.out = NULL;
}

void nj_mgmt_transfers_free(struct nj_mgmt_transfers *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; i < m->n; i++)
        unmap_room(&m->lcore[i]);
    nj_transfer_rates_free(m->rates);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* --- questions ------------------------------------------------------------------------------- */

static struct nj_command *command_of(struct lcore *l, enum kind kind)
{
    struct nj_command *const of[N_KINDS] = {
        [LIST] = &l->list.command,
        [END] = &l->end.command,
        [NETWORK_END] = &l->network_end.command,
    };
    return of[kind];
}

static void log_end(const struct nj_transfer_id *id, const char *when)
{
    char text[NJ_TRANSFER_ID_TEXT_BYTES];

    nj_log(NJ_LEVEL_INFO, "management: transfer %s was ended%s", nj_transfer_id_format(id, text),
           when);
}

static void log_network_end(const struct nj_net *of, uint32_t n, const char *when)
{
    char text[NJ_NETWORK_TEXT_BYTES];

    nj_log(NJ_LEVEL_INFO, "management: %u transfer%s of %s ended%s", n, n == 1 ? "" : "s",
           nj_network_text(&of->addr, of->bits, text), when);
}

/* An lcore has done what its asker no longer waited for. */
static void log_late(struct lcore *l, enum kind kind)
{
    static const char when[] = " by an lcore that answered late";

    if (kind == END && l->end.was_running)
        log_end(&l->end.id, when);
    if (kind == NETWORK_END && l->network_end.n_ended > 0)
        log_network_end(&l->network_end.of, l->network_end.n_ended, when);
}

/* Has the lcore answered the last question of this kind? Then it no longer touches the command. */
static bool is_free(struct lcore *l, enum kind kind)
{
    if (!l->is_out[kind])
        return true;
    if (!nj_command_is_done(command_of(l, kind)))
        return false;
    l->is_out[kind] = false;
    if (l->is_late[kind] && kind != LIST) {
        log_late(l, kind);
        l->is_late[kind] = false;
    }
    return true;
}

/* Asks the lcore, if it has answered the last question of this kind and the ring has room. */
static bool ask(struct lcore *l, const struct question *q)
{
    if (!is_free(l, q->kind) || !q->prepare(l, q->arg))
        return false;
    l->is_late[q->kind] = false; /* the answer to the question before is gone */
    if (!nj_command_ring_put(l->to.commands, command_of(l, q->kind)))
        return false;
    l->is_out[q->kind] = true;
    if (l->to.waker)
        nj_wakeup_signal(l->to.waker);
    return true;
}

bool nj_mgmt_lcore_command(struct nj_mgmt_transfers *m, uint32_t lcore, struct nj_command *command)
{
    const struct nj_mgmt_lcore *to = &m->lcore[lcore].to;

    if (pthread_mutex_trylock(&m->lock) != 0)
        return false;
    bool ok = nj_command_ring_put(to->commands, command);
    pthread_mutex_unlock(&m->lock);
    if (ok && to->waker)
        nj_wakeup_signal(to->waker);
    return ok;
}

/* Asks lcores `first` to `end` - 1. Those in `asked` have the question already. Returns when all
 * have answered, or at the deadline; in *answered those are true that have. */
static void ask_all(struct nj_mgmt_transfers *m, uint32_t first, uint32_t end,
                    const struct question *q, nj_ns wait, bool *asked, bool *answered)
{
    const struct timespec poll = {.tv_nsec = (long)POLL};
    nj_ns began = now_ns(), now = began;
    uint32_t n_left;

    for (;;) {
        n_left = 0;
        for (uint32_t i = first; i < end; i++) {
            struct lcore *l = &m->lcore[i];
            if (!asked[i])
                asked[i] = ask(l, q);
            else if (!answered[i])
                answered[i] = is_free(l, q->kind);
            n_left += !answered[i] && (asked[i] || now < began + GRACE);
        }
        now = now_ns();
        if (n_left == 0 || now >= began + wait)
            break;
        nanosleep(&poll, NULL);
    }
    for (uint32_t i = first; i < end; i++)
        if (asked[i]) /* else an earlier one may be late */
            m->lcore[i].is_late[q->kind] = !answered[i];
}

/* --- the list -------------------------------------------------------------------------------- */

static bool prepare_list(struct lcore *l, const void *filter)
{
    const size_t n_bytes = LISTED_MAX * sizeof *l->list.out;
    const struct nj_mgmt_transfers_filter *f = filter;

    if (!l->has_room) {
        l->list.out = nj_pages_map(n_bytes, n_bytes); /* has addresses and paths */
        l->has_room = l->list.out != NULL;
        if (!l->has_room)
            return false;
    }
    l->list.of = f->of;
    memcpy(l->list.class_of, f->class_of, sizeof l->list.class_of);
    l->list.n_max = LISTED_MAX;
    l->listed_at = now_ns();
    nj_transfers_begin(&l->list);
    return true;
}

/* Is a list on its way, or has it come late, that answers the same question? */
static bool is_asked(struct lcore *l, const struct nj_mgmt_transfers_filter *f)
{
    bool is_same = nj_net_eq(&l->list.of, &f->of) && strcmp(l->list.class_of, f->class_of) == 0;

    return l->is_late[LIST] && is_same && now_ns() < l->listed_at + LIST_LIFE;
}

static int compare_rates(const void *a, const void *b)
{
    const struct nj_mgmt_transfer *x = a, *y = b;

    return (x->bytes_per_s < y->bytes_per_s) - (x->bytes_per_s > y->bytes_per_s);
}

/* Leaves the fastest `n`, in their order. */
static void keep_fastest(struct nj_mgmt_transfers_answer *a, uint32_t n)
{
    if (a->n > 1)
        qsort(a->at, a->n, sizeof *a->at, compare_rates);
    a->n = nj_min_u32(a->n, n);
}

/* Adds the transfers of an lcore to the fastest `n` so far. There is room for twice as many. */
static void take_list(struct nj_mgmt_transfers *m, struct lcore *l, uint32_t n,
                      struct nj_mgmt_transfers_answer *out)
{
    const struct nj_transfers_command *from = &l->list;

    out->n_found += from->n_found;
    for (uint32_t k = 0; k < from->n; k++) {
        struct nj_mgmt_transfer *to = &out->at[out->n++];
        to->of = from->out[k];
        to->bytes_per_s =
            nj_transfer_rates_note(m->rates, &to->of, from->taken_at, &to->is_average);
        if (out->n == out->n_room)
            keep_fastest(out, n);
    }
    if (from->n > LISTED_KEPT)
        unmap_room(l);
}

static bool collect(struct nj_mgmt_transfers *m, const bool *answered, uint32_t n_shown,
                    struct nj_mgmt_transfers_answer *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        out->n_missing += !answered[i];
        n += answered[i] ? m->lcore[i].list.n : 0;
    }
    out->n_room = nj_min_u32(n + 1, 2 * n_shown);
    out->at = n > 0 ? nj_pages_map(out->n_room * sizeof *out->at, 0) : NULL;
    if (n > 0 && !out->at)
        return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (answered[i])
            take_list(m, &m->lcore[i], n_shown, out);
    keep_fastest(out, n_shown);
    return true;
}

bool nj_mgmt_transfers_list(struct nj_mgmt_transfers *m,
                            const struct nj_mgmt_transfers_filter *filter, nj_ns wait,
                            struct nj_mgmt_transfers_answer *out)
{
    const struct question q = {LIST, prepare_list, filter};
    bool asked[NJ_SHARDS_MAX], answered[NJ_SHARDS_MAX] = {false};

    *out = (struct nj_mgmt_transfers_answer){0};
    pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < m->n; i++)
        asked[i] = is_asked(&m->lcore[i], filter);
    ask_all(m, 0, m->n, &q, wait, asked, answered);
    bool ok = collect(m, answered, filter->n_shown, out);
    pthread_mutex_unlock(&m->lock);
    if (!ok)
        *out = (struct nj_mgmt_transfers_answer){0};
    return ok;
}

void nj_mgmt_transfers_release(struct nj_mgmt_transfers_answer *answer)
{
    nj_pages_unmap(answer->at, answer->n_room * sizeof *answer->at);
    *answer = (struct nj_mgmt_transfers_answer){0};
}

/* --- the end --------------------------------------------------------------------------------- */

static bool prepare_end(struct lcore *l, const void *id)
{
    l->end.id = *(const struct nj_transfer_id *)id;
    nj_transfer_end_begin(&l->end);
    return true;
}

enum nj_mgmt_end nj_mgmt_transfer_end(struct nj_mgmt_transfers *m, const struct nj_transfer_id *id,
                                      nj_ns wait)
{
    const struct question q = {END, prepare_end, id};
    bool asked[NJ_SHARDS_MAX] = {false}, answered[NJ_SHARDS_MAX] = {false};
    uint32_t i = id->shard;

    if (i >= m->n)
        return NJ_MGMT_NOT_RUNNING;
    pthread_mutex_lock(&m->lock);
    ask_all(m, i, i + 1, &q, wait, asked, answered);
    bool was_running = answered[i] && m->lcore[i].end.was_running;
    pthread_mutex_unlock(&m->lock);
    if (!answered[i])
        return NJ_MGMT_NO_ANSWER;
    if (!was_running)
        return NJ_MGMT_NOT_RUNNING;
    log_end(id, "");
    return NJ_MGMT_ENDED;
}

static bool prepare_network_end(struct lcore *l, const void *net)
{
    l->network_end.of = *(const struct nj_net *)net;
    nj_network_end_begin(&l->network_end);
    return true;
}

struct nj_mgmt_network_end nj_mgmt_network_end(struct nj_mgmt_transfers *m, const struct nj_net *of,
                                               nj_ns wait)
{
    const struct question q = {NETWORK_END, prepare_network_end, of};
    struct nj_mgmt_network_end out = {0};
    bool asked[NJ_SHARDS_MAX] = {false}, answered[NJ_SHARDS_MAX] = {false};

    pthread_mutex_lock(&m->lock);
    ask_all(m, 0, m->n, &q, wait, asked, answered);
    for (uint32_t i = 0; i < m->n; i++) {
        out.n_ended += answered[i] ? m->lcore[i].network_end.n_ended : 0;
        out.n_missing += !answered[i];
    }
    pthread_mutex_unlock(&m->lock);
    log_network_end(of, out.n_ended, "");
    return out;
}

/* --- late answers ---------------------------------------------------------------------------- */

void nj_mgmt_transfers_tick(struct nj_mgmt_transfers *m)
{
    if (pthread_mutex_trylock(&m->lock) != 0)
        return;
    for (uint32_t i = 0; i < m->n; i++) {
        struct lcore *l = &m->lcore[i];
        for (enum kind k = LIST; k < N_KINDS; k++)
            is_free(l, k);
        if (l->is_late[LIST] && !l->is_out[LIST] && now_ns() >= l->listed_at + LIST_LIFE) {
            l->is_late[LIST] = false;
            unmap_room(l);
        }
    }
    pthread_mutex_unlock(&m->lock);
}
