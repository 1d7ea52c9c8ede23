#include "engine/saved/safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"

namespace stagewright {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie in memory");

using Json = nlohmann::ordered_json;

constexpr std::uint64_t longestHeader = 100'000'000; // as the format says

std::uint64_t countOf(const std::vector<int>& shape)
{
    std::uint64_t count = 1;
    for (const int extent : shape) count *= static_cast<std::uint64_t>(extent);
    return count;
}

std::string partOf(const std::string& path) { return path + ".part"; }

} // namespace

std::string safetensorsHeader(const std::vector<TensorShape>& tensors, const SafetensorsTexts& texts)
{
    Json header = Json::object();
    for (const auto& [key, text] : texts) header["__metadata__"][key] = text;
    std::uint64_t at = 0;
    for (const TensorShape& tensor : tensors) {
        const std::uint64_t end = at + countOf(tensor.shape) * sizeof(float);
        header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
        at = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' '); // the numbers are aligned
    const auto length = static_cast<std::uint64_t>(text.size());
    std::string bytes(sizeof(length), '\0');
    std::memcpy(bytes.data(), &length, sizeof(length));
    return bytes += text;
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, const std::vector<TensorShape>& tensors)
{
    SafetensorsWriter writer;
    const std::string header = safetensorsHeader(tensors);
    writer.m_file.open(partOf(path), std::ios::binary | std::ios::trunc);
    if (!writer.m_file) return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(errno)));
    writer.m_path = path;
    for (const TensorShape& tensor : tensors) writer.m_missing += countOf(tensor.shape);
    writer.m_file.write(header.data(), static_cast<std::streamsize>(header.size()));
    return writer;
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept
    : m_path(std::exchange(other.m_path, {})), m_file(std::move(other.m_file)), m_missing(other.m_missing)
{
}

SafetensorsWriter::~SafetensorsWriter()
{
    if (m_path.empty()) return;
    m_file.close();
    std::error_code ignored;
    std::filesystem::remove(partOf(m_path), ignored);
}

Result<void> SafetensorsWriter::append(std::span<const float> numbers)
{
    if (numbers.size() > m_missing)
        return fail(ErrorCode::Invalid,
                    fmt::format("file {}: {} numbers more than its tensors have", m_path, numbers.size() - m_missing));
    m_missing -= numbers.size();
    m_file.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size_bytes()));
    if (!m_file)
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", m_path, std::strerror(errno)), "free some space");
    return {};
}

Result<void> SafetensorsWriter::finish()
{
    if (m_missing > 0)
        return fail(ErrorCode::Invalid, fmt::format("file {}: {} numbers are missing", m_path, m_missing));
    m_file.close();
    if (!m_file)
        return fail(ErrorCode::Failed, fmt::format("file {}: {}", m_path, std::strerror(errno)), "free some space");
    std::error_code error;
    std::filesystem::rename(partOf(m_path), m_path, error);
    if (error) return fail(ErrorCode::Failed, fmt::format("file {}: {}", m_path, error.message()));
    m_path.clear();
    return {};
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path)
{
    const auto damaged = [&path](const std::string& what) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, what),
                    "it is not a safetensors file of F32 tensors, or is damaged");
    };
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file) return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, std::strerror(errno)));
    const std::streamoff end = file.tellg();
    const std::uint64_t size = end > 0 ? static_cast<std::uint64_t>(end) : 0;
    std::uint64_t length = 0;
    file.seekg(0);
    if (size < sizeof(length) || !file.read(reinterpret_cast<char*>(&length), sizeof(length)))
        return damaged("it has no header");
    if (length > longestHeader || length > size - sizeof(length))
        return damaged(fmt::format("its header would have {} bytes, the file has {}", length, size));
    std::string text(length, '\0');
    if (!file.read(text.data(), static_cast<std::streamsize>(length))) return damaged("its header is cut off");
    const Json header = readForeignJson<Json>(text);
    if (!header.is_object()) return damaged("its header is not a JSON object, or nested too deep");

    SafetensorsFile out;
    out.m_path = path;
    const std::uint64_t room = size - sizeof(length) - length;
    try {
        for (const auto& [name, entry] : header.items()) {
            if (name == "__metadata__") {
                for (const auto& [key, text] : entry.items()) out.m_texts.emplace_back(key, text.get<std::string>());
                continue;
            }
            const auto type = entry.at("dtype").get<std::string>();
            if (type != "F32") return damaged(fmt::format("tensor {} is {}", name, type));
            TensorShape tensor{name, {}};
            std::uint64_t count = 1;
            for (const Json& extent : entry.at("shape")) {
                const auto n = extent.get<std::int64_t>();
                if (n < 0 || n > 1 << 30 || (n > 0 && count > room / static_cast<std::uint64_t>(n)))
                    return damaged(fmt::format("tensor {} is larger than the file", name));
                count *= static_cast<std::uint64_t>(n);
                tensor.shape.push_back(static_cast<int>(n));
            }
            const auto first = entry.at("data_offsets").at(0).get<std::uint64_t>();
            const auto last = entry.at("data_offsets").at(1).get<std::uint64_t>();
            if (first > last || last > room || last - first != count * sizeof(float))
                return damaged(fmt::format("tensor {} has bytes {} to {} of {}, and its shape needs {}", name, first,
                                           last, room, count * sizeof(float)));
            out.m_tensors.push_back(std::move(tensor));
            out.m_begins.push_back(sizeof(length) + length + first);
        }
    } catch (const Json::exception& problem) {
        return damaged(problem.what());
    }
    std::vector<std::size_t> order(out.m_tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return out.m_begins[a] < out.m_begins[b]; });
    SafetensorsFile sorted;
    sorted.m_path = path;
    sorted.m_texts = std::move(out.m_texts);
    for (const std::size_t i : order) {
        sorted.m_tensors.push_back(std::move(out.m_tensors[i]));
        sorted.m_begins.push_back(out.m_begins[i]);
    }
    order.resize(sorted.m_tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return sorted.m_tensors[a].name < sorted.m_tensors[b].name; });
    sorted.m_byName = std::move(order);
    return sorted;
}

const TensorShape* SafetensorsFile::find(std::string_view name) const
{
    const auto found =
        std::lower_bound(m_byName.begin(), m_byName.end(), name,
                         [this](std::size_t i, std::string_view wanted) { return m_tensors[i].name < wanted; });
    return found == m_byName.end() || m_tensors[*found].name != name ? nullptr : &m_tensors[*found];
}

Result<std::vector<float>> SafetensorsFile::read(const std::string& name) const
{
    const TensorShape* found = find(name);
    if (found == nullptr) return fail(ErrorCode::Usage, fmt::format("file {}: it has no tensor {}", m_path, name));
    std::vector<float> numbers(countOf(found->shape));
    STAGEWRIGHT_CHECK(read(*found, 0, numbers));
    return numbers;
}

Result<void> SafetensorsFile::read(const TensorShape& tensor, std::uint64_t first, std::span<float> numbers) const
{
    const std::uint64_t count = countOf(tensor.shape);
    std::ifstream file(m_path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(m_begins[static_cast<std::size_t>(&tensor - m_tensors.data())] +
                                           first * sizeof(float)));
    if (first > count || numbers.size() > count - first ||
        !file.read(reinterpret_cast<char*>(numbers.data()), static_cast<std::streamsize>(numbers.size_bytes())))
        return fail(ErrorCode::Unreadable, fmt::format("file {}: it ends within {}", m_path, tensor.name),
                    "write it again");
    return {};
}

} // namespace stagewright
