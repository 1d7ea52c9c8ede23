#include "engine/saved/saved_training.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr std::string_view prefixes[] = {"", "moment1.", "moment2.", "delayed."};
constexpr const char* formKey = "stagewright_checkpoint";
constexpr const char* form = "1";

template <typename Facts>
const std::string* find(const Facts& facts, std::string_view key)
{
    const auto found = std::find_if(facts.begin(), facts.end(), [key](const auto& fact) { return fact.first == key; });
    return found == facts.end() ? nullptr : &found->second;
}

std::int64_t elementsOf(const std::vector<int>& shape)
{
    std::int64_t count = 1;
    for (const int extent : shape) count *= extent;
    return count;
}

std::string textOf(const std::vector<int>& shape)
{
    std::string text;
    for (const int extent : shape) text += fmt::format("{}{}", text.empty() ? "" : " × ", extent);
    return text.empty() ? "one number" : text;
}

} // namespace

std::string savedName(StateKind kind, std::string_view parameter)
{
    return std::string(prefixes[static_cast<std::size_t>(kind)]).append(parameter);
}

void SavedTraining::add(const StatePart& part, std::span<const float> numbers)
{
    Tensor& tensor = tensors[savedName(part.kind, part.parameter)];
    const auto count = static_cast<std::size_t>(elementsOf(part.shape));
    if (tensor.numbers.empty()) {
        tensor.shape = part.shape;
        if (numbers.size() == count) {
            tensor.numbers.assign(numbers.begin(), numbers.end());
            return;
        }
        tensor.numbers.resize(count);
    }
    std::copy(numbers.begin(), numbers.end(), tensor.numbers.begin() + part.first);
}

const std::string* SavedTraining::fact(std::string_view key) const { return find(facts, key); }

bool SavedTraining::write(const std::function<bool(std::string_view bytes)>& out) const
{
    std::vector<TensorShape> shapes;
    for (const auto& [name, tensor] : tensors) shapes.push_back({name, tensor.shape});
    SafetensorsTexts texts{{"format", "pt"}, {formKey, form}};
    texts.insert(texts.end(), facts.begin(), facts.end());
    if (!out(safetensorsHeader(shapes, texts))) return false;
    return std::all_of(tensors.begin(), tensors.end(), [&out](const auto& one) {
        const std::vector<float>& numbers = one.second.numbers;
        return out({reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
    });
}

Result<SavedFile> SavedFile::open(const std::string& path)
{
    STAGEWRIGHT_TRY(SafetensorsFile tensors, SafetensorsFile::open(path));
    SavedFile file(std::move(tensors));
    const auto refused = [&path](const std::string& what) {
        return fail(ErrorCode::Unreadable, fmt::format("file {}: {}", path, what),
                    "name a file that 'record --checkpoint-every' wrote");
    };
    const std::string* known = file.fact(formKey);
    if (known == nullptr) return refused("it has tensors, but is not a checkpoint of a training");
    if (*known != form) return refused(fmt::format("checkpoints of form '{}' are not known", *known));
    const auto number = [&file](const char* key) {
        const std::string* text = file.fact(key);
        const auto value = text != nullptr ? wholeOf<int>(*text) : std::nullopt;
        return value && *value >= 0 ? value : std::nullopt;
    };
    const auto step = number("step"), updates = number("updates");
    if (!step || !updates) return refused("it does not say how many steps its training had done");
    file.m_step = *step;
    file.m_updates = *updates;
    return file;
}

const std::string* SavedFile::fact(std::string_view key) const { return find(m_tensors.texts(), key); }

bool SavedFile::has(StateKind kind) const
{
    const std::string_view prefix = prefixes[static_cast<std::size_t>(kind)];
    return std::any_of(m_tensors.tensors().begin(), m_tensors.tensors().end(),
                       [prefix](const TensorShape& tensor) { return tensor.name.starts_with(prefix); });
}

bool SavedFile::read(const StatePart& part, std::span<float> numbers) const
{
    const std::string name = savedName(part.kind, part.parameter);
    const TensorShape* found = m_tensors.find(name);
    if (found == nullptr) return false;
    if (found->shape != part.shape)
        throw std::runtime_error(fmt::format("file {}: tensor {} is {}, and the model's is {}", path(), name,
                                             textOf(found->shape), textOf(part.shape)));
    if (auto read = m_tensors.read(*found, static_cast<std::uint64_t>(part.first), numbers); !read)
        throw std::runtime_error(read.error().message);
    return true;
}

} // namespace stagewright
