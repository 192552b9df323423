/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/slow_route.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex_park.h"
#include "base/signal_stack.h"
#include "base/thread_start_on_cpus.h"
#include "rights/syscall_filter.h"

enum state { FREE, RUNS, ANSWERED };

struct nj__mgmt_slow {
    pthread_t thread;
    _Atomic uint32_t n_wakes;
    _Atomic bool is_stopping;
    _Atomic enum state state;               /* the thread has what follows while it is RUNS */
    const void *owner;                      /* NULL: nobody takes the answer */
    const void *waiting[NJ__MGMT_SLOW_MAX]; /* owners, the one that is served first */
    uint32_t n_waiting;
    const struct nj__mgmt_route *route;
    struct nj__mgmt_request request;
    struct nj__mgmt_answer answer;
    void (*on_answer)(void *ctx);
    void *ctx;
};

struct nj__mgmt_answer nj__mgmt_route_run(const struct nj__mgmt_route *route,
                                          struct nj__mgmt_request *r)
{
    struct nj__mgmt_answer a = {0};
    FILE *out = open_memstream(&a.text, &a.n);

    if (!out)
        return a;
    a.status = route->answer(r, out);
    bool ok = !ferror(out);
    ok = fclose(out) == 0 && ok;
    if (!ok) {
        free(a.text);
        a.text = NULL;
    }
    return a;
}

static void *serve(void *slow)
{
    struct nj__mgmt_slow *s = slow;
    void *altstack = nj_altstack_install();

    pthread_setname_np(pthread_self(), "nj-mgmt-slow");
    nj_syscall_allow_list_load();
    while (!atomic_load(&s->is_stopping)) {
        uint32_t seen = atomic_load(&s->n_wakes);
        if (atomic_load(&s->state) != RUNS) {
            if (!atomic_load(&s->is_stopping))
                nj_park(&s->n_wakes, seen, NJ_NEVER);
            continue;
        }
        s->answer = nj__mgmt_route_run(s->route, &s->request);
        atomic_store(&s->state, ANSWERED);
        s->on_answer(s->ctx);
    }
    nj_altstack_remove(altstack);
    return NULL;
}

struct nj__mgmt_slow *nj__mgmt_slow_start(const cpu_set_t *cpus, void (*on_answer)(void *ctx),
                                          void *ctx)
{
    struct nj__mgmt_slow *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->on_answer = on_answer;
    s->ctx = ctx;
    int rc = nj_thread_start(&s->thread, cpus, serve, s);
    if (rc == 0)
        return s;
    free(s);
    errno = rc;
    return NULL;
}

void nj__mgmt_slow_stop(struct nj__mgmt_slow *s)
{
    atomic_store(&s->is_stopping, true);
    nj_unpark(&s->n_wakes);
    pthread_join(s->thread, NULL);
    if (atomic_load(&s->state) == RUNS) { /* the thread has not begun it */
        s->owner = NULL;
        atomic_store(&s->state, FREE);
    }
}

void nj__mgmt_slow_free(struct nj__mgmt_slow *s)
{
    free(s->answer.text);
    free(s);
}

/* --- owners ----------------------------------------------------------------------------------- */

static void leave(struct nj__mgmt_slow *s, const void *owner)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_waiting; i++)
        if (s->waiting[i] != owner)
            s->waiting[n++] = s->waiting[i];
    s->n_waiting = n;
}

/* Some places are for changes only. False: there is no place. */
static bool join(struct nj__mgmt_slow *s, const void *owner, bool changes)
{
    for (uint32_t i = 0; i < s->n_waiting; i++)
        if (s->waiting[i] == owner)
            return true;
    if (s->n_waiting >= (changes ? NJ__MGMT_SLOW_MAX : NJ__MGMT_SLOW_MAX / 2))
        return false;
    s->waiting[s->n_waiting++] = owner;
    return true;
}

static struct nj__mgmt_answer take(struct nj__mgmt_slow *s)
{
    struct nj__mgmt_answer answer = s->answer;

    leave(s, s->owner);
    s->answer = (struct nj__mgmt_answer){0};
    s->owner = NULL;
    atomic_store(&s->state, FREE);
    return answer;
}

bool nj__mgmt_slow_ask(struct nj__mgmt_slow *s, const void *owner,
                       const struct nj__mgmt_route *route, struct nj__mgmt_request *r,
                       struct nj__mgmt_answer *answer)
{
    enum state state = atomic_load(&s->state);

    if (state == ANSWERED && s->owner == owner) {
        *r = s->request;
        *answer = take(s);
        return true;
    }
    if (!join(s, owner, route->access == NJ__MGMT_WRITE)) {
        static const char busy[] = "too many requests of this kind wait\n";
        *answer = (struct nj__mgmt_answer){503, strdup(busy), sizeof busy - 1};
        return true;
    }
    if (state == FREE && s->waiting[0] == owner) {
        s->owner = owner;
        s->route = route;
        s->request = *r;
        atomic_store(&s->state, RUNS);
        nj_unpark(&s->n_wakes);
    }
    return false;
}

bool nj__mgmt_slow_has(const struct nj__mgmt_slow *s, const void *owner)
{
    return s->owner == owner && atomic_load(&s->state) == RUNS;
}

void nj__mgmt_slow_forget(struct nj__mgmt_slow *s, const void *owner)
{
    if (s->owner == owner && atomic_load(&s->state) == ANSWERED)
        free(take(s).text);
    else if (s->owner != owner)
        leave(s, owner);
}
