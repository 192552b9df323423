/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of octets. Contract: field_syntax.h. */
#include "base/field_syntax.h"

const uint8_t nj_syntax_allowed_in[256] = {
    ['\t'] = NJ_IN_VALUE,
    [' '] = NJ_IN_VALUE,
    ['!'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD,
    ['"'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['#'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['$' ... '\''] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD,
    ['(' ... ')'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['*'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD,
    ['+'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD | NJ_IN_SCHEME,
    [','] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['-' ... '.'] =
        NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD | NJ_IN_SCHEME,
    ['/'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['0' ... '9'] =
        NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD | NJ_IN_SCHEME,
    [':' ... ';'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['<'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['='] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['>' ... '?'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['@'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY, /* userinfo is for the framings to refuse */
    ['A' ... 'Z'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD | NJ_IN_SCHEME,
    ['['] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['\\'] = NJ_IN_VALUE | NJ_IN_PATH,
    [']'] = NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY,
    ['^'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['_'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD,
    ['`'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['a' ... 'z'] =
        NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD | NJ_IN_SCHEME,
    ['{'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['|'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_METHOD,
    ['}'] = NJ_IN_VALUE | NJ_IN_PATH,
    ['~'] = NJ_IN_NAME | NJ_IN_VALUE | NJ_IN_PATH | NJ_IN_AUTHORITY | NJ_IN_METHOD,
    [0x80 ... 0xff] = NJ_IN_VALUE | NJ_IN_PATH,
};
