/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses the request fields that affect a file's response: preconditions and ranges (RFC 9110 13,
 * 14), and content negotiation (RFC 9110 12.5).
 *
 * They are read in the order of enum nj_header while there is room. What follows if one is too
 * long:
 *
 *   if-match             431. A client sends it to get an error rather than another version, so it
 *                        must not be ignored (RFC 9110 13.1.1)
 *   if-unmodified-since  ignored: no date is that long, and a value that is no date must be ignored
 *                        (13.1.4). There is room for a date unless if-match takes it, which
 *                        overrules this field
 *   if-none-match        matches nothing, so that the file is sent. It still overrules
 *                        if-modified-since (13.1.3)
 *   if-modified-since    ignored, as if-unmodified-since; if-none-match overrules it
 *   if-range             matches nothing, so that the whole file is sent (13.1.5)
 *   range                ignored (14.2)
 *   accept-encoding      ignored: the file is sent without a coding
 *   accept               ignored: a listing is HTML
 */
#include <string.h>

#include "http/files/file_server_internal.h"

/* Joins the lines of a repeated field (RFC 9110 5.3). For a field that is no list the result is
 * malformed and thus ignored. False: no room. */
static bool join(struct nj_file_server *fs, const struct nj_request_head *head,
                 enum nj_header which, struct nj_str *value, uint32_t *n_joined)
{
    const struct nj_str name = nj_header_name_of_id(which);
    char *to = fs->joined + *n_joined, *end = fs->joined + sizeof fs->joined, *at = to;

    for (const struct nj_field *f = head->fields; f < head->fields + head->n_fields; f++) {
        if (!nj_str_eq(f->name, name))
            continue;
        if (f->value.n_bytes + 2 > (size_t)(end - at))
            return false;
        if (at > to)
            at = mempcpy(at, ", ", 2);
        at = mempcpy(at, f->value.p, f->value.n_bytes);
    }
    *value = (struct nj_str){to, (uint32_t)(at - to)};
    *n_joined += value->n_bytes;
    return true;
}

bool nj__collect_present_fields(struct nj_file_server *fs, const struct nj_request_head *head,
                                struct nj__file_request *req)
{
    struct nj_preconditions *c = &req->conditions;
    struct nj_str *const slot[NJ_N_HEADERS] = {
        [NJ_HEADER_ACCEPT] = &req->accept,
        [NJ_HEADER_ACCEPT_ENCODING] = &req->accept_encoding,
        [NJ_HEADER_IF_MATCH] = &c->if_match,
        [NJ_HEADER_IF_MODIFIED_SINCE] = &c->if_modified_since,
        [NJ_HEADER_IF_NONE_MATCH] = &c->if_none_match,
        [NJ_HEADER_IF_RANGE] = &c->if_range,
        [NJ_HEADER_IF_UNMODIFIED_SINCE] = &c->if_unmodified_since,
        [NJ_HEADER_RANGE] = &c->range,
    };
    /* A value that is present and matches nothing; others are as if they were absent. */
    static const struct nj_str if_too_long[NJ_N_HEADERS] = {
        [NJ_HEADER_IF_NONE_MATCH] = NJ_STR_INIT(""),
        [NJ_HEADER_IF_RANGE] = NJ_STR_INIT(""),
    };
    uint32_t n_joined = 0, n_bytes = 0;

    req->has_conditions = head->header_set & NJ__PRECOND_FIELDS;
    if (nj_unlikely(req->has_conditions))
        *c = (struct nj_preconditions){0};
    for (uint32_t rest = head->header_set & NJ__USED_FIELDS; rest; rest &= rest - 1) {
        enum nj_header i = (enum nj_header)__builtin_ctz(rest);
        struct nj_str value = head->header[i];
        bool fits = !(head->header_repeated >> i & 1) || join(fs, head, i, &value, &n_joined);
        if (nj_unlikely(!fits || value.n_bytes + 2 > NJ__REQ_FIELDS_MAX - n_bytes)) {
            if (i == NJ_HEADER_IF_MATCH)
                return false;
            *slot[i] = if_too_long[i];
            continue;
        }
        n_bytes += value.n_bytes + 2;
        *slot[i] = value;
    }
    return true;
}
