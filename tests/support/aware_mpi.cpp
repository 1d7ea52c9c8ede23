// Loaded before MPI, it makes MPI say that it takes pointers of devices. It need not: those of the fake device are the
// host's.
extern "C" __attribute__((visibility("default"))) int MPIX_Query_cuda_support() { return 1; }
