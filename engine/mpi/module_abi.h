/* What libstagewright_mpi.so gives the program: MPI's point-to-point messages over MPI_COMM_WORLD. Plain C, one table.
   Functions that can fail return 0, or −1 with lastError(); any thread may call (the module calls MPI from one at a
   time). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STAGEWRIGHT_MPI_ABI 2
#define STAGEWRIGHT_MPI_MODULE_FUNCTION "stagewright_mpi_module"

typedef struct StagewrightMpiRequest StagewrightMpiRequest;
typedef struct StagewrightMpiMessage StagewrightMpiMessage;

typedef struct StagewrightMpiTable {
    int32_t abi;
    uint64_t tableBytes;
    const char* (*lastError)(void); /* of the calling thread */
    const char* (*library)(void);   /* its name and version */
    int (*start)(int32_t* index, int32_t* count, int32_t* tagLimit);
    int32_t (*takesDeviceMemory)(void); /* 1: data of messages may lie on GPUs */
    /* met: done only once the receiver has begun to take it */
    int (*send)(int32_t to, int32_t tag, const void* data, uint64_t bytes, int32_t met,
                StagewrightMpiRequest** request);
    /* message: null where none has arrived; to be received once */
    int (*arrived)(int32_t from, int32_t tag, StagewrightMpiMessage** message, uint64_t* bytes);
    int (*receive)(StagewrightMpiMessage* message, void* to, uint64_t bytes, StagewrightMpiRequest** request);
    int (*done)(StagewrightMpiRequest* request, int32_t* done); /* frees it once it is */
    int (*close)(void);
    void (*abort)(int32_t exitCode);
} StagewrightMpiTable;

typedef const StagewrightMpiTable* (*StagewrightMpiModuleFunction)(void);
