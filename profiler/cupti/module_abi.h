/* The C interface between the profiler and libstagewright_cupti.so, the one module that knows CUPTI and NVTX. It is
   loaded with dlopen where a GPU trace is asked for, so that programs start where the CUDA toolkit is absent. Whoever
   changes anything here, or GpuRecord, raises STAGEWRIGHT_CUPTI_ABI; the sizes tell apart builds between two versions.
   */
#ifndef STAGEWRIGHT_CUPTI_MODULE_ABI_H
#define STAGEWRIGHT_CUPTI_MODULE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STAGEWRIGHT_CUPTI_ABI 1u
#define STAGEWRIGHT_CUPTI_MODULE_FUNCTION "stagewright_cupti_module"

enum {
    STAGEWRIGHT_CUPTI_STARTED = 0,
    STAGEWRIGHT_CUPTI_CONFLICT = 1,
    STAGEWRIGHT_CUPTI_FAILED = 2,
};

typedef struct StagewrightCuptiOptions {
    uint64_t bufferBytes;  /* 0: 4 MiB */
    uint64_t largestBytes; /* 0: 128 MiB */
    int32_t events;        /* 1: CUDA event records with device times */
    int32_t dump;          /* 1: keep the buffers as CUPTI filled them, for dump() */
} StagewrightCuptiOptions;

/* Valid until the next take() or stop(). */
typedef struct StagewrightCuptiBatch {
    const void* records; /* GpuRecord[count] */
    uint64_t count;
    const char* names; /* nameCount texts, each with a zero byte behind it; the first is "" */
    uint64_t nameCount;
    int64_t dropped;
    int64_t damagedBuffers;
    int64_t unknownRecords;
    int32_t truncated;
    int32_t reserved;
} StagewrightCuptiBatch;

typedef struct StagewrightCuptiTable {
    uint32_t abi;        /* STAGEWRIGHT_CUPTI_ABI of the module */
    uint32_t tableBytes; /* sizeof(StagewrightCuptiTable), GpuRecord, StagewrightCuptiBatch there */
    uint32_t recordBytes;
    uint32_t batchBytes;

    uint32_t (*cuptiVersion)(void); /* of the library that was loaded */
    /* of the last call that failed; valid until the next call of the same thread */
    const char* (*lastError)(void);
    int (*start)(const StagewrightCuptiOptions* options); /* STAGEWRIGHT_CUPTI_STARTED … */
    void (*push)(int32_t stack, uint64_t id);             /* 0: op, 1: send, 2: receive; on the thread that launches */
    void (*pop)(int32_t stack);
    int (*take)(StagewrightCuptiBatch* out); /* 0: done */
    /* 1: detached; 0: something stayed behind */
    int (*stop)(void);
    /* after stop(): the dump's file; valid until the next start() */
    int (*dump)(const char** bytes, uint64_t* size);
    int (*decodeDump)(const char* bytes, uint64_t size, StagewrightCuptiBatch* out); /* 0: done */
    /* NVTX; nothing where no tool listens */
    void (*rangePush)(const char* name);
    void (*rangePop)(void);
} StagewrightCuptiTable;

/* The module's table, always valid. The module may be of any version: look at the first four members first. */
typedef const StagewrightCuptiTable* (*StagewrightCuptiModuleFunction)(void);

#ifdef __cplusplus
}
#endif

#endif
