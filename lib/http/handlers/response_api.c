/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements nj_response_*() of nightjar/handler.h. Calls record what the handler wants;
 * nj__exchange_send_pending() sends it from the root context. */
#include <string.h>

#include "base/limits.h"
#include "http/handlers/exchange_state.h"
#include "http/proto/path.h"
#include "http/request_admission.h"
#include "sched/ewyk_fiber_scheduler.h"

/* Fits in the smallest block. */
#define SMALL_WRITE_MAX (NJ_BLOCK_SMALL_BYTES - (uint32_t)sizeof(struct nj_block))

/* 0 if the response can still be changed: not ended, not reset, and the stream is open. */
static inline __attribute__((always_inline)) int check_open(const struct nj_response *resp)
{
    const struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp))
        return nj__report_foreign_call(resp);
    if (!resp->on_worker && !nj__stream_is_open(x))
        return nj__report_cancelled(x);
    return resp->ended || resp->broken ? NJ_ERR_INVALID : 0;
}

static void mark_changed(struct nj_response *resp)
{
    if (!resp->on_worker)
        nj__mark_dirty(nj__exchange_of_resp(resp));
}

/* RFC 9110 6.4.1: statuses without content. */
static bool is_empty_status(uint16_t status)
{
    return status == 204 || status == 304;
}

int nj_response_status(struct nj_response *resp, unsigned status)
{
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (resp->committed || status < 200 || status > 599)
        return NJ_ERR_INVALID;
    resp->status = (uint16_t)status;
    return 0;
}

static int declare_length(struct nj_response *resp, const char *value)
{
    struct nj_str digits = {value, (uint32_t)strnlen(value, UINT32_MAX)};
    uint64_t n;

    if (resp->declared_length != NJ_BODY_LEN_UNKNOWN || !nj_str_parse_u64(digits, &n) ||
        n == NJ_BODY_LEN_UNKNOWN)
        return NJ_ERR_INVALID;
    resp->declared_length = n;
    return 0;
}

int nj_response_header(struct nj_response *resp, const char *name, const char *value)
{
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (resp->committed || !name || !value)
        return NJ_ERR_INVALID;
    if (strcmp(name, "content-length") == 0)
        return declare_length(resp, value);
    return nj__resp_fields_add(&resp->fields, resp->blocks, name, value);
}

int nj_response_trailer(struct nj_response *resp, const char *name, const char *value)
{
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (!name || !value || strcmp(name, "content-length") == 0) /* RFC 9110 6.5.1 */
        return NJ_ERR_INVALID;
    return nj__resp_fields_add(&resp->trailers, resp->blocks, name, value);
}

/* 0 if `n_bytes` may be written now, else enum nj_error. */
static int may_write(const struct nj_response *resp, const void *data, size_t n_bytes)
{
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (resp->is_final)
        return NJ_ERR_INVALID;
    if (n_bytes > 0 && (!data || is_empty_status(resp->status)))
        return NJ_ERR_INVALID;
    return n_bytes > resp->declared_length - resp->n_written ? NJ_ERR_INVALID : 0;
}

/* The route uses a function that workers lack, so it must not be moved there. */
static void pin_route(struct nj_exchange *x)
{
    x->task.class_of->pinned = true;
}

static void note_written(struct nj_response *resp, bool is_hungry)
{
    struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (resp->on_worker)
        return;
    x->has_new_bytes = true;
    if (resp->n_written > NJ_WORKER_RESPONSE_BYTES)
        pin_route(x);
    if (is_hungry && !nj_list_linked(&x->waiting_for_buf))
        nj_list_push_back(&x->set->waiting_for_buf, &x->waiting_for_buf);
    nj__mark_dirty(x);
}

/* False while earlier exchanges wait for blocks: free blocks are theirs. */
static bool may_use_blocks(const struct nj_response *resp)
{
    struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (resp->on_worker || x->req.is_head)
        return true;
    if (!x->buf_granted)
        return nj_list_empty(&x->set->waiting_for_buf) && x->set->n_granted == 0;
    x->buf_granted = false;
    x->set->n_granted -= x->set->n_granted > 0;
    return true;
}

/* Appends as much as fits; a response to HEAD only counts. `first`: ahead of exchanges that wait
 * for blocks. */
static uint32_t append_some(struct nj_response *resp, const void *data, size_t n_bytes, bool first)
{
    const struct nj_exchange *x = nj__exchange_of_resp(resp);
    uint32_t fits = nj__response_room(resp), n = n_bytes < fits ? (uint32_t)n_bytes : fits;

    resp->committed = true;
    if (!first && !may_use_blocks(resp)) {
        n = 0;
    } else if (!x->req.is_head) {
        size_t more = n_bytes - n;
        n = nj_byte_queue_put(&resp->out, resp->blocks, data, n,
                              more < UINT16_MAX ? (uint32_t)more : UINT16_MAX);
    }
    resp->n_written += n;
    note_written(resp, n < n_bytes && n < fits);
    return n;
}

int64_t nj_response_try_write(struct nj_response *resp, const void *data, size_t n_bytes)
{
    int rc = may_write(resp, data, n_bytes);

    if (rc != 0)
        return rc;
    uint32_t n = append_some(resp, data, n_bytes, false);
    if (n < n_bytes)
        resp->wants_room = 1;
    return n;
}

/* Writes all bytes or none, where waiting is not possible: on a worker, or in a context that must
 * not block. */
static int write_all_or_none(struct nj_response *resp, const void *data, size_t n_bytes)
{
    if (n_bytes > nj__response_room(resp)) {
        if (!resp->on_worker) {
            if (n_bytes <= NJ_RESPONSE_BUFFER_BYTES) /* larger writes never fit */
                resp->wants_room = (uint32_t)n_bytes;
            return nj__wait_for(nj__exchange_of_resp(resp), NJ__WAIT_WRITABLE);
        }
        resp->broken = resp->needs_lcore =
            true; /* the bytes written so far must not pass for the complete body */
        return NJ_ERR_TOO_LARGE;
    }
    /* Waiting exchanges do not need the smallest blocks, and a context that cannot wait would
     * starve. */
    if (append_some(resp, data, n_bytes, n_bytes <= SMALL_WRITE_MAX) == n_bytes)
        return 0;
    resp->broken = true; /* a part was appended and cannot be removed */
    mark_changed(resp);
    return NJ_ERR_MEMORY;
}

int nj_response_write(struct nj_response *resp, const void *data, size_t n_bytes)
{
    const uint8_t *from = data;
    int rc = may_write(resp, data, n_bytes);

    if (rc != 0)
        return rc;
    if (resp->on_worker || nj_must_not_block() || !nj_fiber_self())
        return write_all_or_none(resp, data, n_bytes);
    for (;;) {
        uint32_t n = append_some(resp, from, n_bytes, false);
        from += n;
        n_bytes -= n;
        if (n_bytes == 0)
            return 0;
        rc = nj__wait_for(nj__exchange_of_resp(resp), NJ__WAIT_WRITABLE);
        if (rc == 0)
            rc = check_open(resp);
        if (rc != 0)
            return rc;
    }
}

/* --- bytes and files sent by reference --- */

/* A reference to a handler's buffer; stored in a block that it releases. */
struct borrow {
    struct nj_ref ref;
    struct nj_block *block;
    void (*release)(void *arg);
    void *arg;
};

static void borrow_released(struct nj_ref *ref)
{
    struct borrow borrow = *(struct borrow *)ref; /* ref is the first member */

    nj_ref_put(&borrow.block->ref);
    if (borrow.release)
        borrow.release(borrow.arg);
}

/* Allocates response memory for `n_bytes`. NULL: none. */
static struct nj_block *take_block(const struct nj_response *resp, uint32_t n_bytes)
{
    return resp->blocks ? nj_block_pool_take(resp->blocks, n_bytes) : nj_block_malloc(n_bytes);
}

int nj_response_send(struct nj_response *resp, const void *data, size_t n_bytes,
                     void (*release)(void *arg), void *arg)
{
    int rc = may_write(resp, data, n_bytes);
    struct nj_block *block = rc == 0 ? take_block(resp, sizeof(struct borrow)) : NULL;

    if (rc != 0)
        return rc;
    if (!block)
        return NJ_ERR_MEMORY;
    struct borrow *borrow = (struct borrow *)block->bytes;
    *borrow = (struct borrow){.block = block, .release = release, .arg = arg};
    nj_ref_init(&borrow->ref, borrow_released);
    resp->is_final = resp->committed = true;
    resp->n_written += n_bytes;
    if (nj__exchange_of_resp(resp)->req.is_head)
        nj_ref_put(&borrow->ref);
    else
        resp->borrowed = (struct nj__borrowed){data, n_bytes, &borrow->ref};
    if (!resp->on_worker)
        nj__exchange_of_resp(resp)->has_new_bytes = true;
    mark_changed(resp);
    return 0;
}

/* The block holds the name and, aligned behind it, room for the response's fields as views. */
int nj_response_file(struct nj_response *resp, const char *path)
{
    struct nj_str s = {path, path ? (uint32_t)strnlen(path, NJ_PATH_MAX + 1) : 0};
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (resp->committed || resp->is_final || !nj_path_is_valid_file_path(s))
        return NJ_ERR_INVALID;
    uint32_t n_name = s.n_bytes - 1, at = (n_name + 1 + 15) / 16 * 16;
    struct nj_block *block =
        take_block(resp, at + NJ_RESPONSE_FIELDS_MAX * (uint32_t)sizeof(struct nj_field));
    if (!block)
        return NJ_ERR_MEMORY;
    memcpy(block->bytes, s.p + 1, n_name);
    block->bytes[n_name] = '\0';
    block->n_bytes = n_name;
    resp->file_fields = (struct nj_field *)(block->bytes + at);
    resp->file = block;
    resp->is_final = true;
    mark_changed(resp);
    return 0;
}

/* --- class, rate, priority, flush --- */

int nj_response_class(struct nj_response *resp, const char *name)
{
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (resp->committed || !name || strnlen(name, NJ_CLASS_NAME_MAX) == NJ_CLASS_NAME_MAX)
        return NJ_ERR_INVALID;
    if (!resp->on_worker && !nj_txns_find_class_by_name(nj__exchange_of_resp(resp)->txn->set, name))
        return NJ_ERR_INVALID;
    strcpy(resp->send_options.class_name, name); /* its length was checked */
    resp->send_options.class_of = true;
    resp->send_options.is_unchecked = resp->on_worker;
    mark_changed(resp);
    return 0;
}

int nj_response_rate(struct nj_response *resp, uint64_t bytes_per_s)
{
    const struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp))
        return nj__report_foreign_call(resp);
    if (!resp->on_worker && !nj__stream_is_open(x))
        return nj__report_cancelled(x);
    resp->send_options.bytes_per_s = bytes_per_s;
    resp->send_options.rate = true;
    mark_changed(resp);
    return 0;
}

int nj_response_priority(struct nj_response *resp, unsigned urgency, bool incremental)
{
    const struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp))
        return nj__report_foreign_call(resp);
    if (!resp->on_worker && !nj__stream_is_open(x))
        return nj__report_cancelled(x);
    if (urgency > 7)
        return NJ_ERR_INVALID;
    resp->send_options.urgency = (uint8_t)urgency;
    resp->send_options.incremental = incremental;
    resp->send_options.priority = true;
    mark_changed(resp);
    return 0;
}

int nj_response_flush(struct nj_response *resp)
{
    int rc = check_open(resp);

    if (rc != 0)
        return rc;
    if (resp->file)
        return NJ_ERR_INVALID;
    resp->committed = true;
    if (!resp->on_worker)
        pin_route(nj__exchange_of_resp(resp));
    mark_changed(resp);
    return 0;
}

void nj_response_reset(struct nj_response *resp)
{
    if (check_open(resp) != 0)
        return;
    resp->broken = true;
    mark_changed(resp);
}

/* --- callbacks --- */

void nj_response_defer(struct nj_response *resp)
{
    struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp)) {
        nj__report_foreign_call(resp);
        return;
    }
    if (resp->on_worker && nj__route_of(x)->type == NJ_NON_BLOCKING) {
        resp->is_deferred = resp->needs_lcore = true;
    } else if (!resp->on_worker && nj_must_not_block()) {
        resp->is_deferred = true;
        pin_route(x);
    }
}

void nj_response_end(struct nj_response *resp)
{
    struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp)) {
        nj__report_foreign_call(resp);
        return;
    }
    if (resp->on_worker)
        resp->is_deferred = false;
    if (resp->on_worker || resp->ended)
        return;
    resp->ended = true;
    if (x->state == NJ__EXCHANGE_DEFERRED)
        nj__handler_done(x);
    else
        nj__mark_dirty(x);
}

void nj_response_on_writable(struct nj_response *resp, nj__callback *fn, void *arg)
{
    struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp)) {
        nj__report_foreign_call(resp);
        return;
    }
    resp->on_writable = (struct nj__hook){fn, arg};
    if (resp->on_worker || !fn || resp->wants_room == 0 ||
        nj__response_room(resp) < resp->wants_room || nj_list_linked(&x->waiting_for_buf))
        return;
    resp->wants_room = 0;
    x->due |= NJ__DUE_WRITABLE;
    nj__mark_dirty(x);
}

void nj_response_on_timer(struct nj_response *resp, uint64_t in_ns, nj__callback *fn, void *arg)
{
    struct nj_exchange *x = nj__exchange_of_resp(resp);

    if (nj__is_foreign(resp)) {
        nj__report_foreign_call(resp);
        return;
    }
    if (resp->on_worker || resp->ended)
        return;
    resp->on_timer = (struct nj__hook){fn, arg};
    x->due &= (uint8_t)~NJ__DUE_TIMER;
    if (in_ns == 0 || !fn)
        nj_timer_disarm(&x->set->wheel, &x->timer);
    else
        nj_timer_arm(&x->set->wheel, &x->timer,
                     in_ns < NJ_NEVER - x->set->now ? x->set->now + in_ns : NJ_NEVER - 1);
}

void nj_response_on_cancelled(struct nj_response *resp, nj__callback *fn, void *arg)
{
    if (nj__is_foreign(resp))
        nj__report_foreign_call(resp);
    else
        resp->on_cancelled = (struct nj__hook){fn, arg};
}
