#include "traces/lessons/lesson_library.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "schedules/base/folder.h"
#include "schedules/base/small_file.h"
#include "traces/lessons/course.h"
#include "traces/lessons/lesson_file.h"
#include "traces/lessons/words.h"

namespace stagewright::lessons {

namespace fs = std::filesystem;

namespace {

Result<std::string> textOfFile(const std::string& path)
{
    std::error_code code;
    if (fs::is_directory(path, code))
        return fail(ErrorCode::Unreadable, fmt::format("{} is a folder, not a lesson", path), "name a file in it");
    if (!fs::exists(path, code))
        return fail(ErrorCode::Unreadable, fmt::format("{} can't be opened", path), "check its name and permissions");
    return readSmallFile(path);
}

std::string installedFolder()
{
    std::error_code code;
    const fs::path self = fs::read_symlink("/proc/self/exe", code);
    return code ? std::string() : (self.parent_path().parent_path() / "share" / "stagewright" / "lessons").string();
}

void add(Library& library, Result<Lesson> lesson)
{
    if (!lesson) {
        library.faults.push_back(std::move(lesson.error()));
        return;
    }
    const bool known = std::any_of(library.lessons.begin(), library.lessons.end(),
                                   [&](const Lesson& one) { return one.id == lesson->id; });
    if (!known) library.lessons.push_back(std::move(*lesson));
}

void addFolder(Library& library, const std::string& folder)
{
    for (const std::string& name : namesIn(folder)) {
        if (!name.ends_with(".md") || name == "README.md") continue;
        const std::string file = fs::path(folder) / name;
        auto text = textOfFile(file);
        add(library, text ? readLesson(*text, file) : tl::unexpected(std::move(text.error())));
    }
}

void addCourses(Library& library, const std::string& folder)
{
    for (const std::string& name : namesIn(folder)) {
        const std::string one = fs::path(folder) / name;
        if (!isCourse(one)) continue;
        auto course = readCourse(one);
        if (!course) {
            library.faults.push_back(std::move(course.error()));
            continue;
        }
        for (Lesson& lesson : course->lessons) add(library, std::move(lesson));
    }
}

} // namespace

std::string learnerFolder()
{
    const char* data = std::getenv("XDG_DATA_HOME");
    if (data && *data) return std::string(data) + "/stagewright";
    const char* home = std::getenv("HOME");
    return std::string(home && *home ? home : ".") + "/.local/share/stagewright";
}

Library loadLibrary()
{
    Library library;
    addFolder(library, learnerFolder() + "/lessons");
    addCourses(library, learnerFolder() + "/lessons");
    if (const std::string installed = installedFolder(); !installed.empty()) addFolder(library, installed);
    for (const BuiltInText& one : builtInLessons()) add(library, readLesson(one.text, std::string(one.name)));
    std::stable_sort(library.lessons.begin(), library.lessons.end(), [](const Lesson& a, const Lesson& b) {
        const auto key = [](const Lesson& lesson) { return lesson.number > 0 ? lesson.number : 1'000'000; };
        if (a.course != b.course) return a.course.empty() != b.course.empty() ? a.course.empty() : a.course < b.course;
        if (!a.course.empty()) return a.place < b.place;
        return key(a) != key(b) ? key(a) < key(b) : a.number == 0 && a.title < b.title;
    });
    return library;
}

const Lesson* Library::find(const std::string& idOrNumber) const
{
    const auto number = wholeOf(idOrNumber);
    for (const Lesson& lesson : lessons) {
        const std::string file = lesson.file.substr(lesson.file.rfind('/') + 1);
        if (lesson.id == idOrNumber || (number && *number == lesson.number && *number > 0) || file == idOrNumber ||
            file == idOrNumber + ".md")
            return &lesson;
    }
    return nullptr;
}

Result<Lesson> findLesson(const std::string& nameOrPath)
{
    std::error_code code;
    const bool path =
        nameOrPath.find('/') != std::string::npos || (nameOrPath.ends_with(".md") && fs::exists(nameOrPath, code));
    if (path) {
        STAGEWRIGHT_TRY(auto text, textOfFile(nameOrPath));
        return readLesson(text, nameOrPath);
    }
    Library library = loadLibrary();
    if (const Lesson* lesson = library.find(nameOrPath)) return *lesson;
    for (const Error& fault : library.faults) // the one that was meant may be the one that can't be read
        if (fault.message.find(nameOrPath) != std::string::npos) return tl::unexpected(fault);
    if (nameOrPath.ends_with(".md"))
        if (auto text = textOfFile(nameOrPath); !text) return tl::unexpected(std::move(text.error()));
    std::string known;
    for (const Lesson& lesson : library.lessons) known += (known.empty() ? "" : ", ") + lesson.id;
    return fail(ErrorCode::Usage, fmt::format("there is no lesson '{}'", nameOrPath),
                "lessons are " + known + "; a file name needs .md or a slash");
}

std::string lessonTemplate(std::string_view id)
{
    std::string text(builtInTemplate());
    constexpr std::string_view name = "NAME";
    for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += id.size())
        text.replace(at, name.size(), id);
    return text;
}

} // namespace stagewright::lessons
