/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps in the life of an exchange that several of its files take. They act on nothing else: no
 * handler runs, and nothing is sent. */
#include "http/handlers/exchange_state.h"

#include "base/limits.h"
#include "http/request_admission.h"
#include "sched/ewyk_fiber_scheduler.h"

int nj__report_foreign_call(const struct nj_response *resp)
{
    struct nj_task_class *c = nj__exchange_of_resp(resp)->task.class_of;

    __atomic_fetch_add(&c->n_foreign_calls, 1, __ATOMIC_RELAXED);
    return NJ_ERR_INVALID;
}

void nj__mark_dirty(struct nj_exchange *x)
{
    if (!nj_list_linked(&x->dirty))
        nj_list_push_back(&x->set->dirty, &x->dirty);
}

void nj__report_over_limit(const struct nj_exchange *x, nj_counter why)
{
    if (nj__stream_is_open(x))
        nj_txn_report_abuse(x->txn, why);
    else
        nj_count(nj__counters(x->set), why);
}

void nj__set_held_response_bytes(struct nj_exchange *x, uint32_t n_bytes)
{
    uint64_t more = (uint64_t)n_bytes - x->n_held; /* modulo 2^64 */

    if (more == 0)
        return;
    x->set->n_held += more;
    x->txn->requester->n_held += more;
    x->n_held = n_bytes;
}

void nj__clear_needs_stack(struct nj_exchange *x)
{
    if (!x->needs_stack)
        return;
    x->txn->requester->n_need_stack--;
    x->needs_stack = false;
}

void nj__exchange_detach(struct nj_exchange *x)
{
    if (!x->conn)
        return;
    nj_list_del(&x->node);
    x->conn->n--;
    x->conn = NULL;
}

void nj__handler_done(struct nj_exchange *x)
{
    nj__clear_needs_stack(x);
    x->state = NJ__EXCHANGE_FINISHED;
    x->resp.ended = true;
    x->due = 0;
    /* the framing returns the flow-control credit when the stream closes. */
    nj_byte_queue_clear(&x->req.body);
    nj_timer_disarm(&x->set->wheel, &x->timer);
    nj_list_del(&x->waiting_for_buf);
    if (!nj__stream_is_open(x))
        nj__exchange_detach(x);
    nj__mark_dirty(x);
}

/* --- the response --- */

void nj__borrowed_release(struct nj__borrowed *borrowed)
{
    if (borrowed->ref)
        nj_ref_put(borrowed->ref);
    *borrowed = (struct nj__borrowed){0};
}

void nj__exchange_fail(struct nj_exchange *x, uint16_t status)
{
    struct nj_response *resp = &x->resp;

    if (x->head_sent) {
        resp->broken = true;
        return;
    }
    nj_byte_queue_clear(&resp->out);
    nj__borrowed_release(&resp->borrowed);
    nj__set_held_response_bytes(x, 0);
    nj__resp_fields_clear(&resp->fields);
    nj__resp_fields_clear(&resp->trailers);
    resp->status = status;
    resp->declared_length = NJ_BODY_LEN_UNKNOWN;
    resp->n_written = 0;
    resp->broken = false;
    x->error = status;
}

/* Bytes of a response to HEAD are never sent. If it exceeds the buffer the handler waits as usual,
 * while the head is sent and closes the stream. Otherwise a handler that writes until its client
 * has enough would never end. */
uint32_t nj__response_room(const struct nj_response *resp)
{
    uint32_t most = resp->on_worker ? NJ_WORKER_RESPONSE_BYTES : NJ_RESPONSE_BUFFER_BYTES;
    uint64_t held = nj__exchange_of_resp(resp)->req.is_head ? resp->n_written : resp->out.n_bytes;
    return held < most ? most - (uint32_t)held : 0;
}

void nj__notify_writable(struct nj_exchange *x)
{
    if (nj_list_linked(&x->waiting_for_buf)) /* it waits for a block to be granted */
        return;
    if (x->waiting == NJ__WAIT_WRITABLE)
        nj_fiber_wake(x->waiter, NJ_WAKE_OK);
    uint32_t wants = x->resp.wants_room;
    if (x->state == NJ__EXCHANGE_DEFERRED && x->resp.on_writable.fn && wants > 0 &&
        nj__response_room(&x->resp) >= wants) {
        x->resp.wants_room = 0;
        x->due |= NJ__DUE_WRITABLE;
        nj__mark_dirty(x);
    }
}
