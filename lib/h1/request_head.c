/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of a head or of a trailer section, and what they say about the message (RFC 9112 2.2, 5, 6,
 * RFC 9110 5).
 *
 * Values are not copied: they point into the bytes that were parsed. Names are written in lower
 * case into the context's scratch memory.
 *
 * An error within a line is reported when that line is complete, and errors of the head as a whole
 * when the head is. So the result depends on the bytes alone, not on their division into inputs.
 */
#include "base/field_line.h"
#include "base/field_list.h"
#include "base/field_syntax.h"
#include "h1/h1_internal.h"
#include "telem/counters_http.h"

/* Fields that the engine reads; before them, those of enum NJ__H1_HOST. HIDDEN: of the connection
 * (RFC 9110 7.6.1), and Upgrade, which is ignored (RFC 9110 7.8). */
enum known { CONNECTION = NJ__H1_N_ONCE, EXPECT, TE, HIDDEN, OTHER = HIDDEN + 3 };

static unsigned known_of(struct nj_str name)
{
    static const struct nj_str names[OTHER] = {
        [NJ__H1_HOST] = NJ_STR_INIT("host"),
        [NJ__H1_LENGTH] = NJ_STR_INIT("content-length"),
        [NJ__H1_CODING] = NJ_STR_INIT("transfer-encoding"),
        [CONNECTION] = NJ_STR_INIT("connection"),
        [EXPECT] = NJ_STR_INIT("expect"),
        [TE] = NJ_STR_INIT("te"),
        [HIDDEN] = NJ_STR_INIT("keep-alive"),
        [HIDDEN + 1] = NJ_STR_INIT("proxy-connection"),
        [HIDDEN + 2] = NJ_STR_INIT("upgrade"),
    };
    unsigned i = 0;

    while (i < OTHER && !nj_str_eq(names[i], name))
        i++;
    return i;
}

/* RFC 9110 7.6.1, 5.6.1. Each line of the field counts. */
static void take_connection(struct nj__h1_head *head, struct nj_str list)
{
    struct nj_str option;

    while (nj_list_next(&list, &option)) {
        head->says_close |= nj_str_eq_nocase(option, NJ_STR("close"));
        head->says_keep_alive |= nj_str_eq_nocase(option, NJ_STR("keep-alive"));
    }
}

/* Returns whether the field is shown to the owner. TE concerns the connection (RFC 9112 7.4, RFC
 * 9110 10.1.4): only what it says about trailers is shown. */
static bool take_known(struct nj__h1_head *head, const struct nj_field *f)
{
    unsigned known = known_of(f->name),
             which = known == OTHER ? nj_header_id_of_name(f->name) : NJ_N_HEADERS;

    if (known < NJ__H1_N_ONCE && head->n_once[known]++ == 0)
        head->once[known] = f->value;
    else if (known == CONNECTION)
        take_connection(head, f->value);
    else if (known == EXPECT)
        nj_expect_read(f->value, &head->expects_continue, &head->expects_other);
    else if (which != NJ_N_HEADERS)
        nj_header_add(&head->req, (enum nj_header)which, f->value);
    /* A target with a host overrides Host (RFC 9112 3.2.2). */
    return known == OTHER || known == NJ__H1_LENGTH || known == EXPECT ||
           (known == NJ__H1_HOST && head->is_origin_form) ||
           (known == TE && nj_str_eq_nocase(f->value, NJ_STR("trailers")));
}

/* Counts the field for the limits (RFC 9110 5.4). Fields stay in their order (RFC 9110 5.3). */
static void take_field(struct nj_h1_context *ctx, const struct nj_field *f)
{
    struct nj__h1_head *head = &ctx->head;

    head->n_bytes += f->name.n_bytes + f->value.n_bytes + 32;
    head->over_limit |= ++head->n_fields > ctx->limits.header_fields_max ||
                        head->n_bytes > ctx->limits.header_bytes_max;
    if (nj_unlikely(head->over_limit || head->is_trailer_section))
        return;
    head->n_scratch += f->name.n_bytes;
    if (take_known(head, f))
        ctx->fields[head->req.n_fields++] = *f;
}

/* A field line (RFC 9112 5, 5.1) without its CRLF. False: it is malformed. The name is a token
 * (RFC 9110 5.1), the value has no controls but HTAB (RFC 9110 5.5). */
static bool take_field_line(struct nj_h1_context *ctx, struct nj_str line)
{
    struct nj_field f;
    enum nj_field_line rv = nj_field_line_parse(line, ctx->scratch + ctx->head.n_scratch, &f);

    if (nj_unlikely(rv != NJ_FIELD_LINE_OK))
        return nj__h1_refuse_head(&ctx->head, 400,
                                  rv == NJ_FIELD_LINE_BAD_NAME ? NJ_C_h1_field_name
                                                               : NJ_C_h1_field_value);
    take_field(ctx, &f);
    return true;
}

static bool take_line(struct nj_h1_context *ctx, struct nj_str line, bool is_request_line)
{
    struct nj__h1_head *head = &ctx->head;
    bool ok = is_request_line ? nj__h1_parse_request_line(head, ctx->scratch, line)
                              : take_field_line(ctx, line);

    if (nj_unlikely(!ok) && memchr(line.p, '\r', line.n_bytes)) /* which is valid nowhere */
        nj__h1_refuse_head(head, 400, NJ_C_h1_line_end);
    return ok;
}

/* ---- a complete head ---- */

static bool is_chunked(struct nj_str coding)
{
    return nj_str_eq_nocase(coding, NJ_STR("chunked"));
}

/* A list of transfer codings other than "chunked": 501 if chunked follows others, which are not
 * implemented; 400 if it is not the last, so that the end of the body is unknown, is applied twice,
 * or stands beside empty elements (RFC 9112 6.1, 6.3, 11.2). */
static bool refuse_codings(struct nj__h1_head *head, struct nj_str list)
{
    struct nj_str coding = {NULL, 0};
    uint32_t n_others = 0;

    while (nj_list_next(&list, &coding) && !is_chunked(coding))
        n_others++;
    bool is_last = is_chunked(coding) && !nj_list_next(&list, &coding);
    return nj__h1_refuse_head(head, n_others > 0 && is_last ? 501 : 400, NJ_C_h1_coding);
}

/* RFC 9112 6.1, 6.2, 6.3, RFC 9110 8.6. Two values of a length, or a length beside a coding, may be
 * an attempt to smuggle a request (RFC 9112 11.2). */
static bool check_body(struct nj__h1_head *head)
{
    struct nj_str length = head->once[NJ__H1_LENGTH], coding = head->once[NJ__H1_CODING];
    uint32_t n_lengths = head->n_once[NJ__H1_LENGTH], n_codings = head->n_once[NJ__H1_CODING];

    if (nj_likely(n_codings == 0))
        return n_lengths == 0 ||
               (n_lengths == 1 && length.n_bytes <= 18 &&
                nj_str_parse_u64(length, &head->req.content_length)) ||
               nj__h1_refuse_head(head, 400, NJ_C_h1_length);
    if (n_lengths > 0 || head->req.version == NJ_HTTP_1_0)
        return nj__h1_refuse_head(head, 400, NJ_C_h1_length_conflict);
    head->is_chunked = n_codings == 1 && is_chunked(coding);
    return head->is_chunked || refuse_codings(head, n_codings == 1 ? coding : NJ_STR(""));
}

/* RFC 9112 3.2, RFC 9110 7.2. The authority of the target (RFC 9112 3.3) is Host, which may be
 * empty if it is ignored (RFC 9112 3.2.2). */
static bool check_host(struct nj__h1_head *head)
{
    struct nj_str host = head->once[NJ__H1_HOST];
    uint32_t n_hosts = head->n_once[NJ__H1_HOST];

    if (n_hosts == 0 && head->req.version == NJ_HTTP_1_0)
        return true;
    if (n_hosts != 1 ||
        !(nj_syntax_is_authority(host) || (host.n_bytes == 0 && !head->is_origin_form)))
        return nj__h1_refuse_head(head, 400, NJ_C_h1_host);
    if (head->is_origin_form)
        head->req.authority = host;
    return true;
}

/* All lines are parsed. Decide what the body is, and whether an error is the response. */
static void check_head(struct nj__h1_head *head)
{
    struct nj_request_head *req = &head->req;

    if (nj_unlikely(head->over_limit))
        nj__h1_refuse_head(head, 431, NJ_C_h1_head_full);
    else if (!head->is_trailer_section && check_body(head) && check_host(head) &&
             nj_unlikely(head->expects_other))
        nj__h1_refuse_head(head, 417, NJ_C_request_expectation);
    if (nj_unlikely(head->is_connect)) { /* no content (RFC 9110 9.3.6) */
        head->is_chunked = false;
        req->content_length = 0;
    }
    req->ends = !head->is_chunked && req->content_length == 0;
    req->expects_continue =
        head->expects_continue && !req->ends && head->req.version != NJ_HTTP_1_0;
}

/* ---- lines ---- */

/* RFC 9112 2.2 */
enum nj__h1_lines nj__h1_parse_lines(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n,
                                     uint32_t at, uint32_t n_seen, bool is_trailer_section)
{
    struct nj__h1_head *head = &ctx->head;
    bool is_first = at == 0 && !is_trailer_section, ok = true;

    ctx->n_last_head = 0;
    memset(head, 0, offsetof(struct nj__h1_head, req.header)); /* header_set says what is valid */
    head->is_trailer_section = is_trailer_section;
    head->req.fields = ctx->fields;
    head->req.version = NJ_HTTP_1_1; /* until the request line says another */
    for (; ok; is_first = false) {
        uint32_t from = nj_max_u32(n_seen, at);
        const uint8_t *lf = memchr(data + from, '\n', n - from);
        uint32_t end = lf ? (uint32_t)(lf - data) + 1 : n;
        head->n_used = at;
        if (nj_unlikely(end > ctx->limits.header_bytes_max))
            ok = nj__h1_refuse_head(head, is_first ? 414 : 431,
                                    is_first ? NJ_C_h1_target_long : NJ_C_h1_head_full);
        else if (!lf)
            return NJ__H1_LINES_MORE;
        else if (nj_unlikely(end - at < 2 || lf[-1] != '\r'))
            ok = nj__h1_refuse_head(head, 400, NJ_C_h1_line_end);
        else if (end - at > 2 || is_first)
            ok = take_line(ctx, (struct nj_str){(const char *)data + at, end - at - 2}, is_first);
        else {
            head->n_used = end;
            check_head(head);
            return NJ__H1_LINES_DONE;
        }
        at = end;
    }
    return NJ__H1_LINES_BAD;
}

/* Consecutive requests are often identical, so the last head is kept with the bytes that it points
 * to. */
enum nj__h1_lines nj__h1_parse_head(struct nj_h1_context *ctx, const uint8_t *data, uint32_t n)
{
    uint32_t n_last = ctx->n_last_head, n_copied = nj_min_u32(n, NJ__H1_LAST_HEAD_MAX);

    if (n_last > 0 && n >= n_last && memcmp(ctx->last_head, data, n_last) == 0)
        return NJ__H1_LINES_DONE;
    memcpy(ctx->last_head, data, n_copied);
    enum nj__h1_lines rv = nj__h1_parse_lines(ctx, ctx->last_head, n_copied, 0, 0, false);
    if (rv == NJ__H1_LINES_DONE)
        ctx->n_last_head = ctx->head.n_used;
    if (rv == NJ__H1_LINES_MORE && n_copied < n)
        rv = nj__h1_parse_lines(ctx, data, n, 0, 0, false);
    return rv;
}
