// Runs a libFuzzer entry point without libFuzzer: seeded mutations of a corpus, for a given number of inputs. A crash,
// a sanitizer report or an abort of the target is the failure; the input that led to it is left in fuzz_last_input.
//   fuzz_x [--runs N] [--seed S] [FILE or FOLDER …]
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<std::uint8_t>;

const std::uint8_t* currentData = nullptr;
std::size_t currentSize = 0;

// Called once when a target dies: only calls that are safe in a signal handler.
void keepInput()
{
    const int file = open("fuzz_last_input", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return;
    for (std::size_t done = 0; done < currentSize;) {
        const ssize_t written = write(file, currentData + done, currentSize - done);
        if (written <= 0) break;
        done += static_cast<std::size_t>(written);
    }
    close(file);
}

void onSignal(int signal)
{
    keepInput();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void feed(const Input& input)
{
    currentData = input.data();
    currentSize = input.size();
    LLVMFuzzerTestOneInput(input.data(), input.size());
}

Input contents(const std::filesystem::path& path)
{
    std::ifstream in(path, std::ios::binary);
    return Input(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

void addFrom(const std::filesystem::path& path, std::vector<Input>& corpus)
{
    if (!std::filesystem::is_directory(path)) {
        corpus.push_back(contents(path));
        return;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end()); // the same inputs in the same order everywhere
    for (const auto& file : files) corpus.push_back(contents(file));
}

// One to eight small changes: flips, deletions, insertions, copies of a part, a piece of another input, truncation.
Input mutated(const std::vector<Input>& corpus, std::mt19937& random)
{
    Input out = corpus[random() % corpus.size()];
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int change = 0; change < changes; ++change) {
        const std::size_t at = out.empty() ? 0 : random() % out.size();
        const std::size_t left = out.size() - at;
        const auto begin = out.begin() + static_cast<std::ptrdiff_t>(at);
        switch (random() % 7) {
        case 0:
            if (!out.empty()) out[at] = static_cast<std::uint8_t>(random());
            break;
        case 1:
            if (!out.empty()) out[at] = static_cast<std::uint8_t>(out[at] ^ (1u << (random() % 8)));
            break;
        case 2:
            out.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min<std::size_t>(left, random() % 16)));
            break;
        case 3: out.insert(begin, 1 + random() % 4, static_cast<std::uint8_t>(random())); break;
        case 4: {
            const Input part(begin, begin + static_cast<std::ptrdiff_t>(std::min<std::size_t>(left, random() % 64)));
            const std::size_t to = out.empty() ? 0 : random() % out.size();
            out.insert(out.begin() + static_cast<std::ptrdiff_t>(to), part.begin(), part.end());
            break;
        }
        case 5: {
            const Input& other = corpus[random() % corpus.size()];
            if (other.empty()) break;
            const std::size_t from = random() % other.size();
            const std::size_t size = std::min<std::size_t>(other.size() - from, random() % 64);
            out.insert(begin, other.begin() + static_cast<std::ptrdiff_t>(from),
                       other.begin() + static_cast<std::ptrdiff_t>(from + size));
            break;
        }
        default:
            if (random() % 4 == 0) out.resize(at);
            break;
        }
    }
    return out;
}

bool number(const char* text, std::uint64_t& value)
{
    const char* end = text + std::strlen(text);
    const auto [last, failure] = std::from_chars(text, end, value);
    return failure == std::errc() && last == end;
}

} // namespace

int main(int argc, char** argv)
{
    std::uint64_t runs = 10'000;
    std::uint64_t seed = 1;
    std::vector<Input> corpus;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if ((word == "--runs" || word == "--seed") && i + 1 < argc) {
            if (!number(argv[++i], word == "--runs" ? runs : seed)) {
                std::fprintf(stderr, "%s: not a number: %s\n", word.c_str(), argv[i]);
                return 2;
            }
        } else if (std::filesystem::exists(word)) {
            addFrom(word, corpus);
        } else {
            std::fprintf(stderr, "no such file or folder: %s\n", argv[i]);
            return 2;
        }
    }
    if (corpus.empty()) {
        std::fprintf(stderr, "usage: %s [--runs N] [--seed S] FILE or FOLDER ...\n", argv[0]);
        return 2;
    }
    const std::size_t corpusSize = corpus.size();
    std::signal(SIGABRT, onSignal);
    if (__sanitizer_set_death_callback != nullptr)
        __sanitizer_set_death_callback(keepInput);
    else
        std::signal(SIGSEGV, onSignal);
    for (const Input& input : corpus) feed(input);
    std::mt19937 random(static_cast<unsigned>(seed));
    for (std::uint64_t run = 0; run < runs; ++run) {
        const Input input = mutated(corpus, random);
        feed(input);
        // Some mutants stay, so that changes build on each other.
        if (random() % 64 == 0 && input.size() < 65'536 && corpus.size() < corpusSize + 256) corpus.push_back(input);
    }
    std::printf("%llu inputs from %zu files, seed %llu: no crash\n", static_cast<unsigned long long>(runs + corpusSize),
                corpusSize, static_cast<unsigned long long>(seed));
    return 0;
}
