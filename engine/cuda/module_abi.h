/* The C interface between the engine and libstagewright_cuda.so, the one module that knows CUDA. Plain C types only:
   both sides may be built by different compilers. The module exports one function, stagewright_cuda_module(); the
   program loads it with dlopen on demand, so that it starts where there is no driver, toolkit or GPU. Whoever changes
   anything here raises STAGEWRIGHT_CUDA_ABI; tableBytes distinguishes builds between two versions.

   Functions that return int: 0 is done; anything else failed, and lastError() of the same thread says why. Work goes to
   a queue: it is done later, in order, on the queue's lane; two lanes know nothing of each other but by marks. Pointers
   are the device's but where `host` is said. All matrices are row-major. */
#ifndef STAGEWRIGHT_CUDA_MODULE_ABI_H
#define STAGEWRIGHT_CUDA_MODULE_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STAGEWRIGHT_CUDA_ABI 8u
#define STAGEWRIGHT_CUDA_MODULE_FUNCTION "stagewright_cuda_module"

enum {
    STAGEWRIGHT_CUDA_TEXT = 192,
    STAGEWRIGHT_CUDA_MINIMUM_MAJOR = 8 /* compute capability: bfloat16 matrix units */,
};

typedef struct StagewrightCudaFacts {
    int32_t runtimeVersion;                    /* 13000: CUDA 13.0 */
    int32_t driverVersion;                     /* the newest runtime that the driver supports; 0: no driver */
    uint64_t matrixVersion;                    /* of cuBLASLt */
    int32_t collectiveVersion;                 /* of NCCL; 0: not found */
    int32_t attentionVersion;                  /* of cuDNN; 0: not found */
    char moduleVersion[STAGEWRIGHT_CUDA_TEXT]; /* of the program it was built with */
    char architectures[STAGEWRIGHT_CUDA_TEXT]; /* compiled for: "80 90 100" */
    char driverMissing[STAGEWRIGHT_CUDA_TEXT]; /* why there is no usable device at all; empty: there is one */
} StagewrightCudaFacts;

typedef struct StagewrightCudaDevice {
    char name[STAGEWRIGHT_CUDA_TEXT];
    char reason[STAGEWRIGHT_CUDA_TEXT]; /* why it is not usable; empty: it is */
    int32_t major;                      /* compute capability */
    int32_t minor;
    int32_t multiprocessors;
    int32_t greenContexts; /* 1: the driver can partition it */
    uint64_t totalBytes;
    uint64_t freeBytes;
    char unit[STAGEWRIGHT_CUDA_TEXT]; /* names the hardware for every process of the host: "GPU-…" */
} StagewrightCudaDevice;

typedef struct StagewrightQueue StagewrightQueue;
typedef struct StagewrightMark StagewrightMark;
/* queues of several devices that NCCL connects, one a device: its ends */
typedef struct StagewrightCommunicator StagewrightCommunicator;
typedef struct StagewrightCommunicatorId { /* what the ends of a communicator in several processes are opened with */
    uint8_t bytes[128];
} StagewrightCommunicatorId;
typedef struct StagewrightPost { /* this end's side of a message to or from another end */
    int32_t sends;               /* 1; 0: it receives */
    int32_t peer;
    void* data;
    uint64_t count; /* bytes */
} StagewrightPost;

enum {
    STAGEWRIGHT_COMPUTE = 0,
    STAGEWRIGHT_TRANSFER = 1,
}; /* lanes */

typedef struct StagewrightQueueRequest {
    int32_t device;
    int32_t bf16; /* elements: 0 fp32, 1 bf16 */
    int32_t tf32; /* GEMMs of fp32 elements on TF32 units */
    int32_t part; /* of `parts` equal partitions of the multiprocessors; parts 0: all of them */
    int32_t parts;
} StagewrightQueueRequest;

/* C = alpha · op(A) · op(B) + beta · C over `depth`, `batches` times. */
enum {
    STAGEWRIGHT_A_BT = 0,
    STAGEWRIGHT_A_B = 1,
    STAGEWRIGHT_AT_B = 2,
};
enum {
    STAGEWRIGHT_PLAIN = 0,
    STAGEWRIGHT_BIAS = 1,
    /* C += bias (columns) */ STAGEWRIGHT_GELU = 2 /* aux = A·Bᵀ + bias; C = gelu(aux) */,
};
typedef struct StagewrightGemm {
    int32_t kind;
    int32_t rows, columns, depth;
    int32_t finish; /* what is fused */
    int32_t floats; /* 1: C is fp32 whatever the elements are */
    float alpha, beta;
    const void* a;
    const void* b;
    void* c;
    const void* bias;
    void* aux;                         /* elements, (rows, columns) dense */
    int64_t aStride, bStride, cStride; /* elements from one row to the next */
    int64_t aBatch, bBatch, cBatch;    /* elements from one batch to the next */
    int32_t batches;
    int32_t reserved;
} StagewrightGemm;

typedef struct StagewrightNorm { /* forward, backward and the sums of a LayerNorm (engine/device/math.h) */
    int32_t rows, width;
    void* x;          /* forward */
    const void* bias; /* may be null */
    const void* gamma;
    const void* beta;
    void* normal;
    float* deviation;
    void* out;
    const void* outGrad;  /* backward */
    const void* residual; /* may be null */
    void* inputGrad;
    float *gammaSum, *betaSum, *residualSum, *inputSum; /* may be null */
    float* partial;                                     /* workspace: partFloats<NormRows> of column_sums.h */
} StagewrightNorm;

typedef struct StagewrightSoftmax { /* of rows · blocks rows: row r of a block keeps columns ≤ past + r */
    int32_t blocks, rows, columns, past;
    int64_t blockStride; /* elements; rows lie `columns` apart */
    void* scores;        /* forward: become probabilities; backward: the probabilities */
    void* gradient;      /* backward: of the probabilities, becomes that of the scores */
} StagewrightSoftmax;

/* attention of whole sequences, tile by tile; log-sum-exp (batch, heads, tokens) kept */
typedef struct StagewrightFlash {
    int32_t batch, heads, tokens, width; /* width of a head, at most 128 */
    int32_t addKeys;                     /* backward: 1: gradients of keys and values are added to */
    int32_t reserved;
    int64_t stride; /* of query, key, value and their gradients */
    const void *query, *key, *value;
    void* out; /* (batch · tokens, heads · width) */
    float* sums;
    const void* outGrad; /* backward */
    void *queryGrad, *keyGrad, *valueGrad;
    float* inner; /* workspace (batch, heads, tokens) */
} StagewrightFlash;

typedef struct StagewrightEmbedding {
    int32_t batch, tokens, past, width, vocabulary;
    const uint8_t* bytes;
    const void *tokenTable, *positionTable;
    void* out;
    const void* outGrad;
    float *tokenGrad, *positionGrad;
} StagewrightEmbedding;

typedef struct StagewrightTensor { /* of a list that one launch or few work off */
    uint64_t count;
    float* value;             /* a sum: it itself */
    const float* gradient;    /* a sum: what is added; a square sum: what is squared */
    float *moment1, *moment2; /* may be null */
    void* used;               /* elements, may be null */
} StagewrightTensor;
typedef struct StagewrightStep { /* of an optimizer */
    float learningRate, beta1, beta2, correction1, correction2, epsilon, weightDecay, gradientScale, momentum, reach;
} StagewrightStep;
enum {
    STAGEWRIGHT_ADAMW = 0,
    STAGEWRIGHT_SGD = 1,
    STAGEWRIGHT_UNDO_ADAMW = 2,
    STAGEWRIGHT_UNDO_SGD = 3,
    STAGEWRIGHT_PREDICT = 4,
    STAGEWRIGHT_SCALE = 5, /* no step: value *= gradientScale */
};

typedef struct StagewrightCudaTable {
    uint32_t abi;        /* STAGEWRIGHT_CUDA_ABI of the module */
    uint32_t tableBytes; /* sizeof(StagewrightCudaTable), StagewrightCudaFacts, StagewrightCudaDevice there */
    uint32_t factsBytes;
    uint32_t deviceBytes;

    const char* (*lastError)(void);
    int (*facts)(StagewrightCudaFacts* out);
    int (*deviceCount)(int32_t* out); /* fails where there is no driver; 0 devices is not a failure */
    int (*describe)(int32_t device, StagewrightCudaDevice* out);

    int (*take)(int32_t device, size_t bytes, void** out); /* *out null and 0 returned: memory is out */
    int (*give)(int32_t device, void* block);

    int (*openQueue)(const StagewrightQueueRequest* request, StagewrightQueue** out);
    void (*closeQueue)(StagewrightQueue* queue); /* waits */
    /* what the calling thread asks of CUDA by other ways concerns its device */
    int (*enter)(StagewrightQueue* queue);
    int (*finish)(StagewrightQueue* queue);                 /* waits for both lanes */
    int (*finished)(StagewrightQueue* queue, int32_t* out); /* 1: there is nothing to wait for */
    /* A mark is passed when all that its lane was asked for before has been done. */
    int (*mark)(StagewrightQueue* queue, int32_t lane, StagewrightMark** out);
    void (*dropMark)(StagewrightMark* mark);
    int (*await)(StagewrightQueue* queue, int32_t lane, StagewrightMark* mark);
    /* of one device and lane 0, both passed */
    int (*nanosBetween)(StagewrightMark* from, StagewrightMark* to, int64_t* out);

    int (*copyRows)(StagewrightQueue* queue, int32_t lane, void* to, size_t toStride, const void* from,
                    size_t fromStride, size_t bytes, size_t rows);
    int (*clear)(StagewrightQueue* queue, void* to, size_t bytes);
    /* host may change at return */
    int (*upload)(StagewrightQueue* queue, void* to, const void* host, size_t bytes);
    int (*download)(StagewrightQueue* queue, void* host, const void* from, size_t bytes); /* waits */

    int (*multiply)(StagewrightQueue* queue, const StagewrightGemm* gemm);
    int (*norm)(StagewrightQueue* queue, const StagewrightNorm* norm);
    int (*scaleShift)(StagewrightQueue* queue, const StagewrightNorm* norm);
    int (*normBackward)(StagewrightQueue* queue, const StagewrightNorm* norm);
    int (*softmax)(StagewrightQueue* queue, const StagewrightSoftmax* softmax);
    int (*softmaxBackward)(StagewrightQueue* queue, const StagewrightSoftmax* softmax);
    int (*flash)(StagewrightQueue* queue, const StagewrightFlash* flash);
    int (*flashBackward)(StagewrightQueue* queue, const StagewrightFlash* flash);
    int (*embed)(StagewrightQueue* queue, const StagewrightEmbedding* embedding);
    int (*embedGrad)(StagewrightQueue* queue, const StagewrightEmbedding* embedding);
    /* logits become softmax − onehot; *loss the mean of −ln p(target). rowLoss: workspace (rows) */
    int (*crossEntropy)(StagewrightQueue* queue, int32_t rows, int32_t vocabulary, void* logits, const uint8_t* targets,
                        float* rowLoss, double* loss);
    /* partial: as in a norm */
    int (*columnSums)(StagewrightQueue* queue, int32_t rows, int32_t width, const void* x, float* sums, float* partial);
    int (*add)(StagewrightQueue* queue, const StagewrightTensor* sums, int32_t count);
    /* *sum = Σ x² of all; partial: workspace of STAGEWRIGHT_PARTIALS doubles */
    int (*squareSum)(StagewrightQueue* queue, const StagewrightTensor* tensors, int32_t count, double* partial,
                     double* sum);
    int (*step)(StagewrightQueue* queue, int32_t kind, const StagewrightStep* step, const StagewrightTensor* tensors,
                int32_t count);
    int (*toElements)(StagewrightQueue* queue, uint64_t count, const float* x, void* elements);
    /* (rows, width): gradient *= gelu'(hidden), then hidden = gelu(hidden); sums (width) of the new gradient's columns;
       partial: partFloats<GeluRows> */
    int (*geluGrad)(StagewrightQueue* queue, int32_t rows, int32_t width, void* hidden, void* gradient, float* sums,
                    float* partial);

    /* Each end has a lane of its own, which marks put in order with those of its queue. All ends of a message or sum
       are asked for at once, as one group, by the calling thread; one thread at a time uses a communicator. Counts of floats:
       of a sum, of one part. */
    int (*openCommunicator)(StagewrightQueue* const* queues, int32_t count, StagewrightCommunicator** out);
    void (*closeCommunicator)(StagewrightCommunicator* communicator); /* before its queues */
    int (*communicatorAwait)(StagewrightCommunicator* communicator, int32_t end, StagewrightMark* mark);
    int (*communicatorMark)(StagewrightCommunicator* communicator, int32_t end, StagewrightMark** out);
    /* count: bytes */
    int (*transfer)(StagewrightCommunicator* communicator, int32_t from, const void* bytes, int32_t to, void* there,
                    size_t count);
    int (*collect)(StagewrightCommunicator* communicator, int32_t kind, const float* const* from, float* const* to,
                   size_t count);
    /* A communicator of `count` ends of which each process, or thread, opens its own: end `number`, as end 0 of what it gets.
       joinCommunicator() only starts: settleCommunicator() waits for all others, each on a thread that nobody else waits for, and
       abortCommunicator() ends that. posts: requested as one group, at once; each is done when its other end has been posted
       too, and those of two ends in the order of their posts. */
    int (*newCommunicatorId)(StagewrightCommunicatorId* out);
    int (*joinCommunicator)(StagewrightQueue* queue, const StagewrightCommunicatorId* id, int32_t number, int32_t count,
                            StagewrightCommunicator** out);
    int (*settleCommunicator)(StagewrightCommunicator* communicator);
    int (*post)(StagewrightCommunicator* communicator, const StagewrightPost* posts, int32_t count);
    int (*pollCommunicator)(
        StagewrightCommunicator* communicator); /* fails where a device or a connection has failed since */
    void (*abortCommunicator)(
        StagewrightCommunicator*
            communicator); /* any thread: waits for another end return; the communicator is unusable then */
} StagewrightCudaTable;

enum { STAGEWRIGHT_PARTIALS = 256 };
enum {
    STAGEWRIGHT_ALL_REDUCE = 0,
    STAGEWRIGHT_REDUCE_SCATTER = 1,
    STAGEWRIGHT_ALL_GATHER = 2,
};

/* The module's table, always valid. The module may be of any version: the caller looks at the first two members. */
typedef const StagewrightCudaTable* (*StagewrightCudaModuleFunction)(void);

#ifdef __cplusplus
}
#endif

#endif
