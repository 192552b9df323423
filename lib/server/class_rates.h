/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures requests and bytes per second of each class (mgmt/view.h). The supervisor. */
#pragma once

#include "mgmt/view.h"

/* Zero-initialized. */
struct nj_class_rates {
    struct nj_class_rate rate[NJ_CLASSES_MAX];        /* read by any thread */
    struct nj_mgmt_class_sum counted[NJ_CLASSES_MAX]; /* at the last update */
    nj_ns updated_at;
};

/* Once per second; does nothing before. */
void nj__class_rates_update(struct nj_class_rates *r, const struct nj_mgmt_view *view, nj_ns now);
