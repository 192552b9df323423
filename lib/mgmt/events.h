/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Server-sent events (WHATWG HTML 9.2) of the state of the server: once per second an event for
 * each document that a page shows, made once for all subscribers, and only while there are some. A
 * subscriber gets the newest state when it has taken the one before: a slow one skips states. All
 * on the management thread.
 */
#pragma once

#include "base/types.h"
#include "mgmt/stream.h"
#include "mgmt/view.h"

#define NJ__MGMT_SUBSCRIBERS_MAX 128u

struct nj__mgmt_state_text;

/* Zero-initialized. At its end there are no subscribers. */
struct nj__mgmt_events {
    struct nj__mgmt_state_text *newest; /* NULL: none yet */
    nj_ns made_at;
    uint32_t n_subscribers;
};

/* Another subscriber: its stream. False: there are too many, or no memory. */
bool nj__mgmt_events_subscribe(struct nj__mgmt_events *e, const struct nj_mgmt_view *v,
                               struct nj__mgmt_stream *stream);
void nj__mgmt_events_end(struct nj__mgmt_events *e);
