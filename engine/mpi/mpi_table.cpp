// The only source that sees mpi.h.
#include <algorithm>
#include <limits>
#include <mutex>
#include <string>

#include <dlfcn.h>
#include <mpi.h>

#include "engine/mpi/module_abi.h"

struct StagewrightMpiRequest {
    MPI_Request request = MPI_REQUEST_NULL;
};
struct StagewrightMpiMessage {
    MPI_Message message = MPI_MESSAGE_NULL;
};

namespace {

std::mutex mutex; // MPI_THREAD_SERIALIZED: one thread at a time
thread_local std::string failure;

int check(int status, const char* what)
{
    if (status == MPI_SUCCESS) return 0;
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(status, text, &length);
    failure = std::string(what) + ": " + text;
    return -1;
}

int failed(const char* why)
{
    failure = why;
    return -1;
}

constexpr std::uint64_t mostBytes = std::numeric_limits<int>::max();

const char* lastError() { return failure.c_str(); }

const char* library()
{
    static std::string text = [] {
        char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
        int length = 0;
        MPI_Get_library_version(version, &length);
        std::string first(version); // its first line
        first.resize(std::min(first.size(), first.find_first_of(",\n")));
        std::replace(first.begin(), first.end(), '\t', ' ');
        return first;
    }();
    return text.c_str();
}

int start(std::int32_t* index, std::int32_t* count, std::int32_t* tagLimit)
{
    const std::lock_guard lock(mutex);
    int given = 0;
    if (check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given), "MPI_Init_thread") != 0) return -1;
    if (given < MPI_THREAD_SERIALIZED) return failed("this MPI can't be called from several threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int* limit = nullptr;
    int known = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &known);
    *index = rank;
    *count = size;
    *tagLimit = known != 0 && *limit < std::numeric_limits<int>::max() ? *limit + 1
                : known != 0                                           ? std::numeric_limits<int>::max()
                                                                       : 32768;
    return 0;
}

// Open MPI, MPICH and their kin have this function where they know of CUDA at all; it answers for the library that
// runs, not for the header that was there.
std::int32_t takesDeviceMemory()
{
    const auto ask = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
    return ask != nullptr && ask() == 1 ? 1 : 0;
}

int send(std::int32_t to, std::int32_t tag, const void* data, std::uint64_t bytes, std::int32_t met,
         StagewrightMpiRequest** request)
{
    if (bytes > mostBytes) return failed("a message of more than 2 GiB");
    auto* made = new StagewrightMpiRequest;
    const std::lock_guard lock(mutex);
    const auto begin = met != 0 ? MPI_Issend : MPI_Isend;
    if (check(begin(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &made->request),
              met != 0 ? "MPI_Issend" : "MPI_Isend") != 0) {
        delete made;
        return -1;
    }
    *request = made;
    return 0;
}

int arrived(std::int32_t from, std::int32_t tag, StagewrightMpiMessage** message, std::uint64_t* bytes)
{
    *message = nullptr;
    const std::lock_guard lock(mutex);
    int flag = 0;
    MPI_Message found = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (check(MPI_Improbe(from, tag, MPI_COMM_WORLD, &flag, &found, &status), "MPI_Improbe") != 0) return -1;
    if (flag == 0) return 0;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    *message = new StagewrightMpiMessage{found};
    *bytes = static_cast<std::uint64_t>(count);
    return 0;
}

int receive(StagewrightMpiMessage* message, void* to, std::uint64_t bytes, StagewrightMpiRequest** request)
{
    auto* made = new StagewrightMpiRequest;
    const std::lock_guard lock(mutex);
    const int status =
        check(MPI_Imrecv(to, static_cast<int>(bytes), MPI_BYTE, &message->message, &made->request), "MPI_Imrecv");
    delete message;
    if (status != 0) {
        delete made;
        return -1;
    }
    *request = made;
    return 0;
}

int done(StagewrightMpiRequest* request, std::int32_t* finished)
{
    const std::lock_guard lock(mutex);
    int flag = 0;
    const int status = check(MPI_Test(&request->request, &flag, MPI_STATUS_IGNORE), "MPI_Test");
    *finished = flag;
    if (status != 0 || flag != 0) delete request;
    return status;
}

int close()
{
    const std::lock_guard lock(mutex);
    return check(MPI_Finalize(), "MPI_Finalize");
}

void abort(std::int32_t exitCode) { MPI_Abort(MPI_COMM_WORLD, exitCode); }

const StagewrightMpiTable table = {STAGEWRIGHT_MPI_ABI,
                                   sizeof(StagewrightMpiTable),
                                   lastError,
                                   library,
                                   start,
                                   takesDeviceMemory,
                                   send,
                                   arrived,
                                   receive,
                                   done,
                                   close,
                                   abort};

} // namespace

extern "C" __attribute__((visibility("default"))) const StagewrightMpiTable* stagewright_mpi_module() { return &table; }
