/* SPDX-License-Identifier: BSD-3-Clause */
/* Wire format of frames (RFC 9113 4.1, 6): constants, and reading and writing frame headers. */
#pragma once

#include <stdint.h>

#include "base/big_endian.h"

#define NJ__H2_PREFACE        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define NJ__H2_PREFACE_BYTES  24u
#define NJ__H2_FRAME_HEAD     9u
/* The payload size that every peer must accept, and the largest we accept: our
 * SETTINGS_MAX_FRAME_SIZE stays at its default. Of the frames we send only DATA may be longer. */
#define NJ__H2_PAYLOAD_MAX    16384u
/* The largest payload of DATA that we send, if the peer's SETTINGS_MAX_FRAME_SIZE allows it.
 * Compared with 16 KiB, a download of 10 MiB takes 5.2 % fewer instructions with 32 KiB and 7.2 %
 * with 64; one of 200 KiB 4.7 and 7.1 %. A frame is also a stream's turn, and one of 64 KiB would
 * fill the send queue of a slow peer (NJ_SENDQ_BYTES_MIN). It divides NJ_CHUNK_BYTES. */
#define NJ__H2_DATA_MAX       32768u
#define NJ__H2_WINDOW_MAX     0x7fffffff /* RFC 9113 6.9.1 */
#define NJ__H2_WINDOW_DEFAULT 65535      /* RFC 9113 6.9.2 */
#define NJ__H2_ID_MAX         0x7fffffffu
#define NJ__H2_PING_BYTES     8u
#define NJ__H2_SETTING_BYTES  6u

enum nj__h2_frame_type {
#define NJ_H2_FRAME(NAME, type, ...) NJ__H2_##NAME = type,
#include "h2/frame_types.def"
#undef NJ_H2_FRAME
};

enum nj__h2_flag {
    NJ__H2_FLAG_END_STREAM = 0x1,
    NJ__H2_FLAG_ACK = 0x1,
    NJ__H2_FLAG_END_HEADERS = 0x4,
    NJ__H2_FLAG_PADDED = 0x8,
    NJ__H2_FLAG_PRIORITY = 0x20,
};

/* RFC 9113 6.5.2, and RFC 8441, RFC 9218 */
enum nj__h2_setting {
    NJ__H2_SETTING_HEADER_TABLE_SIZE = 1,
    NJ__H2_SETTING_ENABLE_PUSH = 2,
    NJ__H2_SETTING_MAX_CONCURRENT_STREAMS = 3,
    NJ__H2_SETTING_INITIAL_WINDOW_SIZE = 4,
    NJ__H2_SETTING_MAX_FRAME_SIZE = 5,
    NJ__H2_SETTING_MAX_HEADER_LIST_SIZE = 6,
    NJ__H2_SETTING_ENABLE_CONNECT_PROTOCOL = 8,
    NJ__H2_SETTING_NO_RFC7540_PRIORITIES = 9,
};

/* Write a frame header at `p`. Returns the address of the payload. */
static inline uint8_t *nj__h2_put_frame_head(uint8_t *p, uint32_t n_payload,
                                             enum nj__h2_frame_type type, uint8_t flags,
                                             uint32_t id)
{
    nj_put_be32(p, n_payload << 8 | (uint32_t)type);
    p[4] = flags;
    nj_put_be32(p + 5, id);
    return p + NJ__H2_FRAME_HEAD;
}
