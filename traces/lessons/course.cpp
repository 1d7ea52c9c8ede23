#include "traces/lessons/course.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/folder.h"
#include "schedules/base/small_file.h"
#include "schedules/base/text.h"
#include "traces/lessons/lesson_file.h"

namespace stagewright::lessons {

namespace fs = std::filesystem;

namespace {

constexpr const char* orderFile = "course.txt";

std::vector<std::string> lessonsIn(const std::string& folder)
{
    std::vector<std::string> names = namesIn(folder);
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".md") || name == "README.md"; });
    return names;
}

Result<std::string> courseText(const std::string& path, const std::string& remedy)
{
    std::error_code code;
    if (!fs::exists(path, code)) return fail(ErrorCode::Unreadable, fmt::format("{} can't be opened", path), remedy);
    return readSmallFile(path);
}

} // namespace

bool isCourse(const std::string& folder)
{
    std::error_code code;
    return fs::is_directory(folder, code) && (fs::exists(folder + "/" + orderFile, code) || !lessonsIn(folder).empty());
}

Result<Course> readCourse(const std::string& given)
{
    std::string folder = given;
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    Course course;
    course.title = fs::path(folder).filename().string();
    std::vector<std::string> names = lessonsIn(folder);
    std::error_code code;
    const std::string order = folder + "/" + orderFile;
    if (fs::exists(order, code)) {
        STAGEWRIGHT_TRY(auto text, courseText(order, "check its permissions"));
        names.clear();
        bool titled = false;
        for (const std::string_view line : split(text, "\n")) {
            const std::string words(trimmed(line));
            if (words.empty() || words.front() == '#') continue;
            if (!std::exchange(titled, true))
                course.title = words;
            else
                names.push_back(words);
        }
    }
    if (names.empty())
        return fail(ErrorCode::Unreadable, fmt::format("{}: the course has no lessons", folder),
                    fmt::format("list their files in {}, after a title", orderFile));
    for (const std::string& name : names) {
        const std::string file = fmt::format("{}/{}", folder, name);
        STAGEWRIGHT_TRY(auto text, courseText(file, fmt::format("correct its name in {}", order)));
        STAGEWRIGHT_TRY(auto lesson, readLesson(text, file));
        if (std::any_of(course.lessons.begin(), course.lessons.end(),
                        [&](const Lesson& one) { return one.id == lesson.id; }))
            return fail(ErrorCode::Unreadable, fmt::format("{}: two lessons have the id '{}'", folder, lesson.id),
                        "give one of them another id");
        lesson.course = course.title;
        lesson.number = 0; // its place is the course's
        lesson.place = static_cast<int>(course.lessons.size()) + 1;
        course.lessons.push_back(std::move(lesson));
    }
    return course;
}

} // namespace stagewright::lessons
