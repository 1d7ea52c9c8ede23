// Reading the members of a JSON object by type; the first that is missing or of another type is the problem.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace stagewright {

class JsonInput {
public:
    using Json = nlohmann::ordered_json;
    explicit JsonInput(const Json& json) : m_json(json) {}

    const std::string& problem() const { return m_problem; }
    bool has(const char* key) const { return m_json.contains(key); }

    template <typename T>
    T get(const char* key, std::optional<T> fallback = std::nullopt)
    {
        const auto found = m_json.find(key);
        if (found == m_json.end()) {
            if (!fallback && m_problem.empty()) m_problem = std::string(key) + " is missing";
            return fallback.value_or(T());
        }
        return read<T>(*found, key);
    }
    const Json& list(const char* key)
    {
        static const Json none = Json::array();
        const auto found = m_json.find(key);
        if (found != m_json.end() && found->is_array()) return *found;
        if (m_problem.empty()) m_problem = std::string(key) + " is not a list";
        return none;
    }
    const Json& object(const char* key, const Json& none)
    {
        const auto found = m_json.find(key);
        if (found != m_json.end() && found->is_object()) return *found;
        wrong(std::string(key) + " is not an object");
        return none;
    }
    template <typename T>
    T read(const Json& json, const char* key)
    {
        if constexpr (std::is_same_v<T, std::string>) {
            if (json.is_string()) return json.get<std::string>();
        } else if constexpr (std::is_same_v<T, bool>) {
            if (json.is_boolean()) return json.get<bool>();
        } else if constexpr (std::is_same_v<T, double>) {
            if (json.is_number()) return json.get<double>();
        } else {
            if (json.is_number_integer() && json.get<std::int64_t>() >= std::numeric_limits<T>::min() &&
                json.get<std::int64_t>() <= std::numeric_limits<T>::max())
                return static_cast<T>(json.get<std::int64_t>());
        }
        if (m_problem.empty()) m_problem = std::string(key) + " is of another type";
        return T();
    }
    template <typename T>
    std::vector<T> all(const Json& json, const char* key)
    {
        std::vector<T> out;
        if (!json.is_array() && m_problem.empty()) m_problem = std::string(key) + " is not a list";
        if (json.is_array())
            for (const Json& one : json) out.push_back(read<T>(one, key));
        return out;
    }
    template <typename T>
    std::vector<T> all(const char* key)
    {
        return all<T>(list(key), key);
    }
    template <typename T>
    std::vector<std::vector<T>> table(const char* key)
    {
        std::vector<std::vector<T>> out;
        for (const Json& row : list(key)) out.push_back(all<T>(row, key));
        return out;
    }
    void wrong(std::string what)
    {
        if (m_problem.empty()) m_problem = std::move(what);
    }

private:
    const Json& m_json;
    std::string m_problem;
};

} // namespace stagewright
