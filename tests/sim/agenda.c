/* SPDX-License-Identifier: BSD-3-Clause */
#include "agenda.h"

#include <stdlib.h>

#include "base/assert.h"

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct sim_event *a, struct sim_event *b)
{
    struct sim_event t = *a;
    *a = *b;
    *b = t;
}

void nj_sim_agenda_add(struct sim_agenda *a, nj_ns at, uint32_t kind, void *what)
{
    if (a->n == a->n_room) {
        a->n_room = a->n_room ? 2 * a->n_room : 256;
        a->heap = realloc(a->heap, a->n_room * sizeof *a->heap);
        NJ_CHECK(a->heap);
    }
    size_t i = a->n++;
    a->heap[i] = (struct sim_event){at, a->n_added++, kind, what};
    for (; i > 0 && before(&a->heap[i], &a->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&a->heap[i], &a->heap[(i - 1) / 2]);
}

nj_ns nj_sim_agenda_next(const struct sim_agenda *a)
{
    return a->n ? a->heap[0].at : NJ_NEVER;
}

struct sim_event nj_sim_agenda_pop(struct sim_agenda *a)
{
    NJ_CHECK(a->n > 0);
    struct sim_event first = a->heap[0];
    a->heap[0] = a->heap[--a->n];
    for (size_t i = 0;;) {
        size_t least = i, left = 2 * i + 1;
        if (left < a->n && before(&a->heap[left], &a->heap[least]))
            least = left;
        if (left + 1 < a->n && before(&a->heap[left + 1], &a->heap[least]))
            least = left + 1;
        if (least == i)
            return first;
        swap(&a->heap[i], &a->heap[least]);
        i = least;
    }
}

void nj_sim_agenda_fini(struct sim_agenda *a)
{
    NJ_CHECK(a->n == 0);
    free(a->heap);
    *a = (struct sim_agenda){0};
}
