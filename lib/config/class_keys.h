/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a class by name, as in the policy file and in /nightjar/limits (docs/policy.md).
 * Pure. */
#ifndef NJ_CONFIG_CLASS_KEYS_H
#define NJ_CONFIG_CLASS_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shape/request_class.h"

/* Some of the limits of a class: those whose bit is set. The whole server's are like a class's. */
struct nj_class_keys {
    uint32_t set; /* bit i: key i of the table in class_keys.c */
    struct nj_class value;
};

uint32_t nj_class_n_keys(void);
const char *nj_class_key_name(uint32_t i);
/* Keys that the whole server has: rate, ceiling, burst. */
bool nj_class_key_of_server(uint32_t i);
/* -1: there is none of that name. */
int nj_class_key_find(const char *name);

/* One more key. False, with what was expected, when the value makes no sense. */
bool nj_class_key_read(struct nj_class_keys *keys, uint32_t i, const char *value,
                       const char **expected);
/* Do they fit together? False, with what is wrong. */
bool nj_class_keys_check(const struct nj_class_keys *keys, const char **wrong);

/* These win over what is there. A rate without a ceiling is both, and forgets the old burst. */
void nj_class_keys_apply(const struct nj_class_keys *keys, struct nj_class *to);
/* Later ones win over earlier ones; what both say stays as if it had been said in that order. */
void nj_class_keys_merge(struct nj_class_keys *to, const struct nj_class_keys *later);
/* Of a class that says nothing itself: what each client and each response has. */
void nj_class_inherit(struct nj_class *to, const struct nj_class *from);

/* The value of a key as the file would say it; NULL when it is no limit, or the default. */
const char *nj_class_key_show(const struct nj_class *c, uint32_t i, char *text, size_t n_text);

#endif
