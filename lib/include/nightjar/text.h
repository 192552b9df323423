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
 * No function here allocates, keeps state, or depends on the locale. Returned views point into the
 * view that was given, and live as long as its bytes. Functions with an `out` for text return, like
 * snprintf(), the length of the whole result without the terminating NUL; a length >= n_out means
 * that `out` was too small. Unlike snprintf() they never truncate: `out` is "" then.
 *
 * NULL is valid everywhere: a view with it is empty, whatever its n_bytes; a C string that is NULL
 * equals no view, and begins none; a result whose pointer is NULL is not stored.
 */
#ifndef NIGHTJAR_TEXT_H
#define NIGHTJAR_TEXT_H

#include <nightjar/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/** printf() format of a view: printf("path " NJ_VIEW_FMT "\n", NJ_VIEW_ARG(path)). printf() stops
 * at a NUL byte of the view. */
#define NJ_VIEW_FMT    "%.*s"
/** Arguments for NJ_VIEW_FMT. Evaluates `v` three times. Not for views longer than INT_MAX bytes;
 * parts of a request's head are always shorter. */
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
 * Returns: true if they have the same bytes. A view with a NUL byte never equals a C string.
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
 * Test whether a view begins with a C string.
 *
 * Context: any thread.
 * Returns: true if it does; always for "".
 */
NJ_API bool nj_view_begins(struct nj_view v, const char *text);

/**
 * Split a view at the first `separator`, which is in neither part. Without a separator `before` is
 * the whole view and `after` is empty. `before` and `after` may point to the variable passed as
 * `v`: nj_view_cut(rest, ',', &item, &rest).
 *
 * Context: any thread.
 * Returns: true if there was a separator.
 */
NJ_API bool nj_view_cut(struct nj_view v, char separator, struct nj_view *before,
                        struct nj_view *after);

/**
 * Remove spaces and tabs at both ends (OWS of RFC 9110 5.6.3).
 *
 * Context: any thread.
 * Returns: the rest, which may be empty.
 */
NJ_API struct nj_view nj_view_trim(struct nj_view v);

/* --- query strings: application/x-www-form-urlencoded (WHATWG URL standard 5.1) ------------ */

/**
 * Take the first pair from `rest`: start with nj_request_query(), or with a body of that type.
 * Empty pairs ("&&") are skipped; a pair without '=' has an empty value. Name and value are still
 * encoded: see nj_query_decode().
 *
 * Context: any thread.
 * Returns: true, or false if no pair is left; then `name` and `value` are unchanged.
 */
NJ_API bool nj_query_next(struct nj_view *rest, struct nj_view *name, struct nj_view *value);

/**
 * Find the first pair whose decoded name is `name`. The value is still encoded.
 *
 * Context: any thread.
 * Returns: true, or false if there is none; then `value` is unchanged.
 */
NJ_API bool nj_query_find(struct nj_view query, const char *name, struct nj_view *value);

/**
 * Decode a name or a value: '+' is a space and "%41" is 'A'. A '%' without two hexadecimal digits
 * is kept. The result may contain any bytes: invalid UTF-8 is kept (the standard replaces it by
 * U+FFFD, as nj_json_string() does), and "%00" is a NUL byte. Therefore compare strlen(out) with
 * the result before using `out` as a C string. Decoded text is never longer than encoded text:
 * n_bytes + 1 bytes suffice.
 *
 * Context: any thread.
 * Returns: the bytes of the decoded text. If that is >= n_out, `out` is "" (unless n_out is 0).
 */
NJ_API size_t nj_query_decode(struct nj_view encoded, char *out, size_t n_out);

/* --- numbers ------------------------------------------------------------------------------ */

/**
 * Parse a view as a decimal number. All bytes must be digits, without blanks and sign. Leading
 * zeros are allowed.
 *
 * Context: any thread.
 * Returns: true, or false if it is not such a number or not within min..max; then `out` is
 *          unchanged.
 */
NJ_API bool nj_view_to_u64(struct nj_view v, uint64_t min, uint64_t max, uint64_t *out);

/**
 * The same as nj_view_to_u64() with an optional leading '-'. A leading '+' is invalid.
 *
 * Context: any thread.
 * Returns: as nj_view_to_u64().
 */
NJ_API bool nj_view_to_i64(struct nj_view v, int64_t min, int64_t max, int64_t *out);

#define NJ_U64_BYTES 21 /**< the digits of UINT64_MAX, and a NUL */

/**
 * Write a number as decimal digits with a terminating NUL, into NJ_U64_BYTES bytes.
 *
 * Context: any thread.
 * Returns: the number of digits.
 */
NJ_API size_t nj_u64_digits(uint64_t n, char *out);

/* --- JSON --------------------------------------------------------------------------------- */

/** Size of `out` that suffices for nj_json_string() of `n` bytes. */
#define NJ_JSON_STRING_BYTES(n) (6 * (size_t)(n) + 3)

/**
 * Write a view as a JSON string with quotes (RFC 8259 7). Quotes and backslashes are escaped;
 * control characters (C0, DEL, C1), U+2028 and U+2029 become a backslash, "u" and four hexadecimal
 * digits. Bytes outside valid UTF-8 sequences (RFC 3629 4) are replaced by U+FFFD.
 *
 * Context: any thread.
 * Returns: the bytes of the string. If that is >= n_out, `out` is "" (unless n_out is 0), which no
 *          JSON parser accepts as a value.
 */
NJ_API size_t nj_json_string(struct nj_view v, char *out, size_t n_out);

#ifdef __cplusplus
}
#endif

#endif
