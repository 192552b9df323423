/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is wrong with a server now: the one place that knows it, for /ready, the metrics, and the
 * command `problems`. Nothing here waits for an lcore: how long one has not polled is what the
 * supervisor saw at its last tick, at most 20 ms ago. Any thread but an lcore.
 */
#pragma once

#include "mgmt/view.h"

enum nj__problem_kind {
    /* The server should get no requests: it is not ready. */
    NJ__PROBLEM_SUPERVISOR_STUCK,
    NJ__PROBLEM_STARTING,
    NJ__PROBLEM_DRAINING,
    NJ__PROBLEM_YIELDING, /* another process takes new connections */
    NJ__PROBLEM_PORT_DOWN,
    NJ__PROBLEM_ADDRESS_TENTATIVE,
    NJ__PROBLEM_LCORE_STUCK,
    /* It serves, but an operator should look. */
    NJ__PROBLEM_CERTIFICATE_EXPIRED, /* or is not valid yet */
    NJ__PROBLEM_CERTIFICATE_EXPIRES,
    NJ__PROBLEM_TABLE_FULL,
    NJ__PROBLEM_RELOAD_FAILED,
    NJ__PROBLEM_N_KINDS,
};

/* "port-down", for JSON and the label of a metric. */
const char *nj__problem_name(enum nj__problem_kind kind);
/* Should a server with this problem get no requests? */
static inline bool nj__problem_is_grave(enum nj__problem_kind kind)
{
    return kind <= NJ__PROBLEM_LCORE_STUCK;
}

/* Calls `tell` for each problem: the grave ones first. The text is one line, without '\n'. */
typedef void nj__problem_fn(void *ctx, enum nj__problem_kind kind, const char *text);
void nj__problems_find(const struct nj_mgmt_view *v, nj__problem_fn *tell, void *ctx);

/* Does the supervisor run? */
bool nj__mgmt_is_healthy(const struct nj_mgmt_view *v);
