/* SPDX-License-Identifier: BSD-3-Clause */
/* What does a new connection speak? Decided from its first bytes, as few as possible. */
#ifndef NJ_CONN_PREFACE_DETECT_H
#define NJ_CONN_PREFACE_DETECT_H

#include <stddef.h>
#include <stdint.h>

/* The client connection preface of RFC 9113 3.4. */
#define NJ_H2_PREFACE       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NJ_H2_PREFACE_BYTES 24u

/* Known from so many bytes at the latest. */
#define NJ_SNIFF_BYTES 16u

enum nj_sniff { NJ_SNIFF_MORE, NJ_SNIFF_H2, NJ_SNIFF_HTTP1, NJ_SNIFF_GARBAGE };

/* `n_bytes` first bytes of a connection, at most NJ_H2_PREFACE_BYTES looked at. HTTP/2 is known as
 * soon as the bytes leave no other reading ("PRI "), HTTP/1.x by a method and a space. */
enum nj_sniff nj_sniff(const uint8_t *data, size_t n_bytes);

#endif
