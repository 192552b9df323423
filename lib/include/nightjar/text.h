/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Text for handlers: compare and cut views, read query strings and numbers, write JSON strings.
 *
 *     struct nj_view value;
 *     uint64_t n = 10;
 *
 *     if (nj_query_find(nj_request_query(req), "n", &value) &&
 *         !nj_view_to_u64(value, 1, 1000, &n)) {
 *         nj_response_status(resp, 400);
 *         return;
 *     }
 *
 * No function here allocates, keeps state, or depends on the locale. Views that they return point
 * into the view that was given, and live as long as its bytes. A view of n_bytes 0 may have any
 * `p`, NULL too. Functions with an `out` for text work as snprintf() does: they return the bytes of
 * the whole result without the NUL that ends it, so that a result >= n_out means that `out` was too
 * small. Unlike snprintf() they never leave a part: `out` is "" then.
 */
#ifndef NIGHTJAR_TEXT_H
#define NIGHTJAR_TEXT_H

#include <nightjar/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What printf() formats a view with: printf("path " NJ_VIEW_FMT "\n", NJ_VIEW_ARG(path)). printf()
 * ends at a NUL byte of the view, if it has one. */
#define NJ_VIEW_FMT    "%.*s"
/** A view as arguments for NJ_VIEW_FMT. Evaluates `v` three times. Not for views of more than
 * INT_MAX bytes, which no part of a request's head has. */
#define NJ_VIEW_ARG(v) (int)(v).n_bytes, (v).n_bytes > 0 ? (v).p : ""

/* --- views -------------------------------------------------------------------------------- */

/**
 * A view of a C string, without its NUL.
 *
 * Context: any thread.
 * Returns: the view; of the first UINT32_MAX bytes if the string is longer.
 */
NJ_API struct nj_view nj_view_of(const char *text);

/**
 * Compare a view with a C string, byte by byte.
 *
 * Context: any thread.
 * Returns: true when they have the same bytes. A view with a NUL byte is equal to no C string.
 */
NJ_API bool nj_view_is(struct nj_view v, const char *text);

/**
 * Compare a view with a C string; 'A' to 'Z' are equal to 'a' to 'z' (ASCII, RFC 20).
 *
 * Context: any thread.
 * Returns: true when they are equal.
 */
NJ_API bool nj_view_is_nocase(struct nj_view v, const char *text);

/**
 * Look whether the first bytes of a view are those of a C string.
 *
 * Context: any thread.
 * Returns: true when they are; always for "".
 */
NJ_API bool nj_view_begins(struct nj_view v, const char *text);

/**
 * Cut a view in two at the first `separator`, which is in neither part. Without a separator
 * `before` is the whole view and `after` is empty. Both may be the object that was given by value:
 * nj_view_cut(rest, ',', &item, &rest).
 *
 * Context: any thread.
 * Returns: true when there was a separator.
 */
NJ_API bool nj_view_cut(struct nj_view v, char separator, struct nj_view *before,
                        struct nj_view *after);

/**
 * Drop spaces and tabs at both ends: OWS of RFC 9110 5.6.3.
 *
 * Context: any thread.
 * Returns: the rest, which may be empty.
 */
NJ_API struct nj_view nj_view_trim(struct nj_view v);

/* --- query strings: application/x-www-form-urlencoded (WHATWG URL standard 5.1) ------------ */

/**
 * Take the first pair from `rest`: begin with nj_request_query(), or with a body of that type.
 * Empty pairs ("&&") are skipped; a pair without '=' has an empty value. Name and value are still
 * encoded: see nj_query_decode().
 *
 * Context: any thread.
 * Returns: true, or false when there is no pair left; then `name` and `value` are unchanged.
 */
NJ_API bool nj_query_next(struct nj_view *rest, struct nj_view *name, struct nj_view *value);

/**
 * Find the first pair whose name, decoded, is `name`. The value is still encoded.
 *
 * Context: any thread.
 * Returns: true, or false when there is none; then `value` is unchanged.
 */
NJ_API bool nj_query_find(struct nj_view query, const char *name, struct nj_view *value);

/**
 * Decode a name or a value: '+' is a space and "%41" is 'A'. A '%' without two hexadecimal digits
 * behind it stays as it is. The result may be any bytes: invalid UTF-8 is kept (the
 * standard replaces it by U+FFFD, as nj_json_string() does), and "%00" is a NUL byte. So
 * strlen(out) may be smaller than the result: compare them before `out` is used as a C string.
 * Decoded text is never longer than encoded text: n_bytes + 1 bytes are enough.
 *
 * Context: any thread.
 * Returns: the bytes of the decoded text. When that is >= n_out, `out` is "" (unless n_out is 0).
 */
NJ_API size_t nj_query_decode(struct nj_view encoded, char *out, size_t n_out);

/* --- numbers ------------------------------------------------------------------------------ */

/**
 * Read a view as a decimal number. The whole view has to be digits: no blanks, no sign. Zeros may
 * stand in front.
 *
 * Context: any thread.
 * Returns: true, or false when it is no such number or is not within min..max; then `out` is
 *          unchanged.
 */
NJ_API bool nj_view_to_u64(struct nj_view v, uint64_t min, uint64_t max, uint64_t *out);

/**
 * As nj_view_to_u64(), for numbers that may have a '-' in front. A '+' is no number.
 *
 * Context: any thread.
 * Returns: as nj_view_to_u64().
 */
NJ_API bool nj_view_to_i64(struct nj_view v, int64_t min, int64_t max, int64_t *out);

#define NJ_U64_BYTES 21 /**< the digits of UINT64_MAX, and a NUL */

/**
 * Write a number as decimal digits with a NUL behind them, into NJ_U64_BYTES bytes.
 *
 * Context: any thread.
 * Returns: the number of digits.
 */
NJ_API size_t nj_u64_digits(uint64_t n, char *out);

/* --- JSON --------------------------------------------------------------------------------- */

/** Bytes of `out` that are enough for nj_json_string() of `n` bytes. */
#define NJ_JSON_STRING_BYTES(n) (6 * (size_t)(n) + 3)

/**
 * Write a view as a JSON string with its quotes (RFC 8259 7). Quotes and backslashes are escaped,
 * control characters (C0, DEL, C1) and U+2028 and U+2029 become "\uXXXX". A byte that does not
 * belong to a valid UTF-8 sequence (RFC 3629 4) is replaced by U+FFFD.
 *
 * Context: any thread.
 * Returns: the bytes of the string. When that is >= n_out, `out` is "" (unless n_out is 0), which
 *          no JSON parser accepts as a value.
 */
NJ_API size_t nj_json_string(struct nj_view v, char *out, size_t n_out);

#ifdef __cplusplus
}
#endif

#endif
