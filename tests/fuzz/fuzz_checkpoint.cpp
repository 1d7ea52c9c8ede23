// Checkpoints of any bytes: opened or refused with a reason; what is listed is inside of the file and can be read, and
// what is read is what another writing of it has.
#include <cstdint>
#include <cstdio>
#include <string>

#include "engine/saved/saved_training.h"
#include "require.h"

using namespace stagewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string path = "fuzz_checkpoint.safetensors";
    std::FILE* file = std::fopen(path.c_str(), "wb");
    require(file != nullptr);
    require(size == 0 || std::fwrite(data, 1, size, file) == size);
    require(std::fclose(file) == 0);
    const auto tensors = SafetensorsFile::open(path);
    if (!tensors) require(!tensors.error().message.empty());
    const auto opened = SavedFile::open(path);
    if (!opened) {
        require(!opened.error().message.empty());
        return 0;
    }
    require(tensors.has_value() && opened->step() >= 0 && opened->updates() >= 0);
    SavedTraining copy;
    for (const TensorShape& tensor : tensors->tensors()) {
        const auto numbers = tensors->read(tensor.name);
        require(numbers.has_value() && numbers->size() * sizeof(float) <= size);
        copy.add({tensor.name, tensor.shape, StateKind::Value, 0}, *numbers);
    }
    std::string written;
    require(copy.write([&written](std::string_view bytes) {
        written += bytes;
        return true;
    }));
    require(written.size() >= 8);
    return 0;
}
