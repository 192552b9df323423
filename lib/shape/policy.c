/* SPDX-License-Identifier: BSD-3-Clause */
#include "shape/policy.h"

const struct nj_policy nj_policy_none = {
    .version = 1,
    .n_classes = 1,
    .classes = {{.name = "default"}},
    .client_bits4 = 32,
    .client_bits6 = 64,
};
