/* SPDX-License-Identifier: BSD-3-Clause */
/* The event queue of virtual time: a heap. Events of one instant occur in the order in which they
 * were added, so a seed always gives the same run. */
#pragma once

#include "base/types.h"

struct sim_event {
    nj_ns at;
    uint64_t order;
    uint32_t kind; /* an enumeration of the user */
    void *what;
};

struct sim_agenda {
    struct sim_event *heap;
    size_t n, n_room;
    uint64_t n_added;
};

void nj_sim_agenda_add(struct sim_agenda *a, nj_ns at, uint32_t kind, void *what);
/* NJ_NEVER if it is empty. */
nj_ns nj_sim_agenda_next(const struct sim_agenda *a);
/* The earliest event. Precondition: not empty. */
struct sim_event nj_sim_agenda_pop(struct sim_agenda *a);
/* Precondition: empty. */
void nj_sim_agenda_fini(struct sim_agenda *a);
