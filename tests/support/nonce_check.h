/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Notes each key and nonce of an AEAD with which a record is sealed, in all of the program: none
 * may come twice (RFC 8446 5.3). For programs of one thread that are linked statically, with
 * nonce_check.c and -Wl,--wrap=nj_tls_aead_begin.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Forget all that was noted. */
void nj_test_nonces_forget(void);
/* As above; frees the memory as well. */
void nj_test_nonces_free(void);
/* Was a nonce used twice with one key, since the last call of nj_test_nonces_forget()? */
bool nj_test_nonce_was_reused(void);
/* How many were noted. */
uint32_t nj_test_nonces_seen(void);
