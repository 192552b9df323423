/* SPDX-License-Identifier: BSD-3-Clause */
/* Chunk syntax (RFC 9112 7.1): sizes, extensions, and the CRLF behind data. Extensions are checked
 * and ignored (7.1.1). */
#include "base/field_syntax.h"
#include "h1/h1_internal.h"

enum state {
    BAD,
    SIZE = BAD, /* the state at the begin; no transition leads to it */
    BEFORE_EXT,
    NAME_BEGIN,
    NAME,
    AFTER_NAME,
    VALUE_BEGIN,
    VALUE,
    QUOTED,
    ESCAPED,
    AFTER_QUOTED,
    LINE_END,
    DATA_CR,
    DATA_LF,
};

enum class { NONE, TCHAR, TEXT, BLANK, SEMICOLON, EQUALS, QUOTE, BACKSLASH, CR, N_CLASSES };

/* By state and class of the next octet. chunk-ext = *( BWS ";" BWS name [ BWS "=" BWS value ] ). */
static const uint8_t next_state[LINE_END][N_CLASSES] = {
    [SIZE] = {[CR] = LINE_END, [SEMICOLON] = NAME_BEGIN, [BLANK] = BEFORE_EXT},
    [BEFORE_EXT] = {[SEMICOLON] = NAME_BEGIN, [BLANK] = BEFORE_EXT},
    [NAME_BEGIN] = {[TCHAR] = NAME, [BLANK] = NAME_BEGIN},
    [NAME] = {[TCHAR] = NAME,
              [EQUALS] = VALUE_BEGIN,
              [SEMICOLON] = NAME_BEGIN,
              [BLANK] = AFTER_NAME,
              [CR] = LINE_END},
    [AFTER_NAME] = {[EQUALS] = VALUE_BEGIN, [SEMICOLON] = NAME_BEGIN, [BLANK] = AFTER_NAME},
    [VALUE_BEGIN] = {[TCHAR] = VALUE, [QUOTE] = QUOTED, [BLANK] = VALUE_BEGIN},
    [VALUE] = {[TCHAR] = VALUE, [SEMICOLON] = NAME_BEGIN, [BLANK] = BEFORE_EXT, [CR] = LINE_END},
    [QUOTED] = {[TCHAR] = QUOTED,
                [TEXT] = QUOTED,
                [BLANK] = QUOTED,
                [SEMICOLON] = QUOTED,
                [EQUALS] = QUOTED,
                [QUOTE] = AFTER_QUOTED,
                [BACKSLASH] = ESCAPED},
    [ESCAPED] = {[TCHAR] = QUOTED,
                 [TEXT] = QUOTED,
                 [BLANK] = QUOTED,
                 [SEMICOLON] = QUOTED,
                 [EQUALS] = QUOTED,
                 [QUOTE] = QUOTED,
                 [BACKSLASH] = QUOTED},
    [AFTER_QUOTED] = {[SEMICOLON] = NAME_BEGIN, [BLANK] = BEFORE_EXT, [CR] = LINE_END},
};

static enum class class_of(uint8_t c) {
    switch (c){
        case '\r' : return CR; case ' ' : case '\t' : return BLANK; case ';' : return SEMICOLON;
        case '=' : return EQUALS;
        case '"' : return QUOTE;
        case '\\' : return BACKSLASH;
        default : break;
    }
uint8_t in = nj_syntax_allowed_in[c];
return in & NJ_IN_METHOD ? TCHAR : in & NJ_IN_VALUE ? TEXT : NONE;
}

static int hex_value(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One octet of the line with the size. False: it is malformed. */
static bool take_octet(struct nj__h1_chunk *chunk, uint8_t c)
{
    int hex = chunk->state == SIZE ? hex_value(c) : -1;

    if (hex >= 0) {
        chunk->n_bytes = chunk->n_bytes << 4 | (uint64_t)hex;
        return ++chunk->n_digits <= 16; /* 64 bits */
    }
    if (chunk->n_digits == 0)
        return false;
    chunk->state = next_state[chunk->state][class_of(c)];
    return chunk->state != BAD &&
           (chunk->state == LINE_END || ++chunk->n_ext <= NJ__H1_EXT_BYTES_MAX);
}

enum nj__h1_chunk_result nj__h1_chunk_parse(struct nj__h1_chunk *chunk, const uint8_t **data,
                                            const uint8_t *end)
{
    while (*data < end) {
        uint8_t c = *(*data)++;
        switch (chunk->state) {
        case DATA_CR:
            if (c != '\r')
                return NJ__H1_CHUNK_LINE_END;
            chunk->state = DATA_LF;
            break;
        case DATA_LF:
            if (c != '\n')
                return NJ__H1_CHUNK_LINE_END;
            chunk->state = SIZE;
            chunk->n_bytes = chunk->n_digits = 0;
            break;
        case LINE_END:
            if (c != '\n')
                return NJ__H1_CHUNK_LINE_END;
            chunk->state = DATA_CR;
            return chunk->n_bytes > 0 ? NJ__H1_CHUNK_DATA : NJ__H1_CHUNK_LAST;
        default:
            if (!take_octet(chunk, c))
                return c == '\r' || c == '\n' ? NJ__H1_CHUNK_LINE_END : NJ__H1_CHUNK_BAD;
        }
    }
    return NJ__H1_CHUNK_MORE;
}
