/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a class by name, as in the policy file and in /nightjar/limits (docs/policy.md).
 * Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nightjar/server.h>

#include "shape/request_policy.h"

/* A subset of the limits of a class, or of the whole server. */
struct nj_class_keys {
    uint32_t set; /* bit i: key i of the table in class_limit_keys.c has a value */
    struct nj_class value;
};

/* The name of key `i`, or NULL after the last one. */
const char *nj_class_key_name(uint32_t i);
/* Is the key valid for the whole server (rate, ceiling, burst)? */
bool nj_class_key_allowed_for_server(uint32_t i);
/* Returns the index of the key, or -1. */
int nj_class_key_find(const char *name);

/* Parse the value of key `i` into `keys`. False if it is invalid; `expected`, of `n` bytes, then
 * describes what the key accepts. */
bool nj_class_key_parse(struct nj_class_keys *keys, uint32_t i, const char *value, char *expected,
                        size_t n);
/* Which values contradict each other, or NULL. */
const char *nj_class_keys_error(const struct nj_class_keys *keys);

/* Override the limits of `to`. A rate without a ceiling sets both and resets the burst. */
void nj_class_keys_apply(const struct nj_class_keys *keys, struct nj_class *to);
/* The same for the options of the command line that stand for keys of a section. */
void nj_class_keys_apply_options(const struct nj_server_config *c, const char *section,
                                 struct nj_class *to);
/* Merge `later` into `to`; values of `later` override, as if both were applied in order. */
void nj_class_keys_merge(struct nj_class_keys *to, const struct nj_class_keys *later);

/* The keys of the limit that key `i` belongs to, as bits: rate, ceiling and burst are one. */
uint32_t nj_class_key_limit(uint32_t i);

/* Format the value of a key in the syntax of the policy file, into `text` or as a constant string.
 * NULL if it is unlimited or the default. */
const char *nj_class_key_format(const struct nj_class *c, uint32_t i, char *text, size_t n_text);
