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

#define POLL  (200 * NJ_US) /* between two looks at the answers */
/* For an lcore that has not answered the question before: it may be stuck, and others wait. */
#define GRACE (20 * NJ_MS)

enum kind { LIST, END, NETWORK_END, N_KINDS };

/* The commands of one lcore. Each is used for one question at a time. */
struct lcore {
    struct nj_mgmt_lcore to;
    struct nj_transfers_command list;
    struct nj_transfer_end_command end;
    struct nj_network_end_command network_end;
    bool is_out[N_KINDS]; /* put, and not seen to be done since */
    uint32_t n_room;      /* entries of list.out, which is mapped if this is not 0 */
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
    if (l->n_room > 0)
        nj_pages_unmap(l->list.out, l->n_room * sizeof *l->list.out);
    l->n_room = 0;
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

/* Has the lcore answered the last question of this kind? Then it no longer touches the command. */
static bool is_free(struct lcore *l, enum kind kind)
{
    if (l->is_out[kind] && nj_command_is_done(command_of(l, kind)))
        l->is_out[kind] = false;
    return !l->is_out[kind];
}

/* Asks the lcore, if it has answered the last question of this kind and the ring has room. */
static bool ask(struct lcore *l, const struct question *q)
{
    if (!is_free(l, q->kind) || !q->prepare(l, q->arg))
        return false;
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

    pthread_mutex_lock(&m->lock);
    bool ok = nj_command_ring_put(to->commands, command);
    pthread_mutex_unlock(&m->lock);
    if (ok && to->waker)
        nj_wakeup_signal(to->waker);
    return ok;
}

/* Asks lcores `first` to `end` - 1. Returns when all have answered, or at the deadline; in
 * *answered those have a bit that have. */
static void ask_all(struct nj_mgmt_transfers *m, uint32_t first, uint32_t end,
                    const struct question *q, nj_ns wait, bool *answered)
{
    const struct timespec poll = {.tv_nsec = (long)POLL};
    nj_ns began = nj_os_clock_gettime_ns(CLOCK_MONOTONIC), now = began;
    bool asked[NJ_SHARDS_MAX] = {false};

    for (;;) {
        uint32_t n_left = 0;
        for (uint32_t i = first; i < end; i++) {
            struct lcore *l = &m->lcore[i];
            if (!asked[i])
                asked[i] = ask(l, q);
            else if (!answered[i])
                answered[i] = is_free(l, q->kind);
            n_left += !answered[i] && (asked[i] || now < began + GRACE);
        }
        now = nj_os_clock_gettime_ns(CLOCK_MONOTONIC);
        if (n_left == 0 || now >= began + wait)
            return;
        nanosleep(&poll, NULL);
    }
}

/* --- the list -------------------------------------------------------------------------------- */

static bool prepare_list(struct lcore *l, const void *filter)
{
    const struct nj_mgmt_transfers_filter *f = filter;
    uint32_t n =
        f->n_max > 0 && f->n_max < NJ_MGMT_TRANSFERS_MAX ? f->n_max : NJ_MGMT_TRANSFERS_MAX;

    if (l->n_room < n) {
        unmap_room(l);
        l->list.out = nj_pages_map(n * sizeof *l->list.out, 0); /* has addresses and paths */
        if (!l->list.out)
            return false;
        l->n_room = n;
    }
    l->list.of = f->of;
    memcpy(l->list.class_of, f->class_of, sizeof l->list.class_of);
    l->list.n_max = n;
    nj_transfers_begin(&l->list);
    return true;
}

static bool collect(struct nj_mgmt_transfers *m, const bool *answered,
                    struct nj_mgmt_transfers_answer *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->n; i++) {
        out->n_missing += !answered[i];
        n += answered[i] ? m->lcore[i].list.n : 0;
    }
    out->at = n > 0 ? nj_pages_map(n * sizeof *out->at, 0) : NULL;
    if (n > 0 && !out->at)
        return false;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct nj_transfers_command *from = &m->lcore[i].list;
        out->n_found += answered[i] ? from->n_found : 0;
        for (uint32_t k = 0; answered[i] && k < from->n; k++) {
            struct nj_mgmt_transfer *to = &out->at[out->n++];
            to->of = from->out[k];
            to->bytes_per_s =
                nj_transfer_rates_note(m->rates, &to->of, from->taken_at, &to->is_average);
        }
    }
    return true;
}

bool nj_mgmt_transfers_list(struct nj_mgmt_transfers *m,
                            const struct nj_mgmt_transfers_filter *filter, nj_ns wait,
                            struct nj_mgmt_transfers_answer *out)
{
    const struct question q = {LIST, prepare_list, filter};
    bool answered[NJ_SHARDS_MAX] = {false};

    *out = (struct nj_mgmt_transfers_answer){0};
    pthread_mutex_lock(&m->lock);
    ask_all(m, 0, m->n, &q, wait, answered);
    bool ok = collect(m, answered, out);
    pthread_mutex_unlock(&m->lock);
    if (!ok)
        *out = (struct nj_mgmt_transfers_answer){0};
    return ok;
}

void nj_mgmt_transfers_release(struct nj_mgmt_transfers_answer *answer)
{
    nj_pages_unmap(answer->at, answer->n * sizeof *answer->at);
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
    bool answered[NJ_SHARDS_MAX] = {false};
    char text[NJ_TRANSFER_ID_TEXT_BYTES];
    uint32_t i = id->shard;

    if (i >= m->n)
        return NJ_MGMT_NOT_RUNNING;
    pthread_mutex_lock(&m->lock);
    ask_all(m, i, i + 1, &q, wait, answered);
    bool was_running = answered[i] && m->lcore[i].end.was_running;
    pthread_mutex_unlock(&m->lock);
    if (!answered[i])
        return NJ_MGMT_NO_ANSWER;
    if (!was_running)
        return NJ_MGMT_NOT_RUNNING;
    nj_log(NJ_LEVEL_INFO, "management: transfer %s was ended", nj_transfer_id_format(id, text));
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
    bool answered[NJ_SHARDS_MAX] = {false};
    char text[NJ_NETWORK_TEXT_BYTES];

    pthread_mutex_lock(&m->lock);
    ask_all(m, 0, m->n, &q, wait, answered);
    for (uint32_t i = 0; i < m->n; i++) {
        out.n_ended += answered[i] ? m->lcore[i].network_end.n_ended : 0;
        out.n_missing += !answered[i];
    }
    pthread_mutex_unlock(&m->lock);
    nj_log(NJ_LEVEL_INFO, "management: %u transfer%s of %s ended", out.n_ended,
           out.n_ended == 1 ? "" : "s", nj_network_text(&of->addr, of->bits, text));
    return out;
}
