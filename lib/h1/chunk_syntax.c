/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunk syntax (RFC 9112 7.1): sizes, extensions, and the CRLF behind data. Extensions are checked
 * and ignored (RFC 9112 7.1.1). */
#include "base/field_syntax.h"
#include "h1/h1_internal.h"

/* clang-format off */
/* Of the line with the size: before and in the digits, then in extensions. No transition leads to
 * SIZE, so it stands for an error there. */
enum state { SIZE, BEFORE_EXT, NAME_BEGIN, NAME, AFTER_NAME, VALUE_BEGIN, VALUE, QUOTED, ESCAPED,
             AFTER_QUOTED, LINE_END, DATA_CR, DATA_LF };

enum octet { NONE, TCHAR, TEXT, BLANK, SEMICOLON, EQUALS, QUOTE, BACKSLASH, CR, N_CLASSES };

/* By state and class of the next octet. chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS value ] ). */
static const uint8_t next_state[LINE_END][N_CLASSES] = {
    [SIZE] = {[BLANK] = BEFORE_EXT, [SEMICOLON] = NAME_BEGIN, [CR] = LINE_END},
    [BEFORE_EXT] = {[BLANK] = BEFORE_EXT, [SEMICOLON] = NAME_BEGIN},
    [NAME_BEGIN] = {[TCHAR] = NAME, [BLANK] = NAME_BEGIN},
    [NAME] = {[TCHAR] = NAME, [BLANK] = AFTER_NAME, [SEMICOLON] = NAME_BEGIN,
              [EQUALS] = VALUE_BEGIN, [CR] = LINE_END},
    [AFTER_NAME] = {[BLANK] = AFTER_NAME, [SEMICOLON] = NAME_BEGIN, [EQUALS] = VALUE_BEGIN},
    [VALUE_BEGIN] = {[TCHAR] = VALUE, [BLANK] = VALUE_BEGIN, [QUOTE] = QUOTED},
    [VALUE] = {[TCHAR] = VALUE, [BLANK] = BEFORE_EXT, [SEMICOLON] = NAME_BEGIN, [CR] = LINE_END},
    [QUOTED] = {[TCHAR ... EQUALS] = QUOTED, [QUOTE] = AFTER_QUOTED, [BACKSLASH] = ESCAPED},
    [ESCAPED] = {[TCHAR ... BACKSLASH] = QUOTED},
    [AFTER_QUOTED] = {[BLANK] = BEFORE_EXT, [SEMICOLON] = NAME_BEGIN, [CR] = LINE_END},
};
/* clang-format on */

static enum octet class_of(uint8_t c)
{
    static const char marks[] = "\r \t;=\"\\";
    static const uint8_t classes[] = {CR, BLANK, BLANK, SEMICOLON, EQUALS, QUOTE, BACKSLASH};
    const char *mark = memchr(marks, c, sizeof classes);
    uint8_t in = nj_syntax_allowed_in[c];

    if (mark)
        return (enum octet)classes[mark - marks];
    return in & NJ_IN_METHOD ? TCHAR : in & NJ_IN_VALUE ? TEXT : NONE;
}

/* One octet of the line with the size. False: it is malformed, or too long. */
static bool take_octet(struct nj__h1_chunk_line *chunk, uint8_t c)
{
    int hex = chunk->state == SIZE ? nj_hex_value((char)c) : -1;

    if (hex >= 0) {
        chunk->n_bytes = chunk->n_bytes << 4 | (uint64_t)hex;
        return ++chunk->n_digits <= 16 && chunk->n_bytes <= INT64_MAX;
    }
    if (chunk->n_digits == 0)
        return false;
    chunk->state = next_state[chunk->state][class_of(c)];
    return chunk->state != SIZE &&
           (chunk->state == LINE_END || ++chunk->n_ext <= NJ__H1_EXT_BYTES_MAX);
}

enum nj__h1_chunk nj__h1_chunk_parse(struct nj__h1_chunk_line *chunk, const uint8_t **data,
                                     const uint8_t *end)
{
    while (*data < end) {
        uint8_t c = *(*data)++;
        if (chunk->state >= LINE_END) { /* a CRLF, of which each octet is a state */
            if (c != (chunk->state == DATA_CR ? '\r' : '\n'))
                return NJ__CHUNK_LINE_END;
            if (chunk->state == LINE_END) {
                chunk->state = DATA_CR;
                return NJ__CHUNK_DATA;
            }
            chunk->n_bytes = chunk->n_digits = 0;
            chunk->state = chunk->state == DATA_CR ? DATA_LF : SIZE;
        } else if (!take_octet(chunk, c)) {
            return c == '\r' || c == '\n' ? NJ__CHUNK_LINE_END : NJ__CHUNK_BAD;
        }
    }
    return NJ__CHUNK_MORE;
}
