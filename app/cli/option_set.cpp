#include "app/cli/option_set.h"

namespace stagewright {

Option::Option(std::string names, Place place, std::string help, bool flag)
    : m_names(std::move(names)), m_place(std::move(place)), m_help(std::move(help)), m_flag(flag)
{
}

Option& Option::form(std::string text)
{
    m_form = std::move(text);
    return *this;
}

Option& Option::check(ValueCheck check)
{
    m_check = std::move(check);
    return *this;
}

Option& Option::required()
{
    m_required = true;
    return *this;
}

Option& Option::each()
{
    m_each = true;
    return *this;
}

Option& Option::commas()
{
    m_commas = true;
    return *this;
}

Option& Option::values(int least, int most)
{
    m_least = least;
    m_most = most;
    return *this;
}

Option& Option::given(bool& given)
{
    m_given = &given;
    return *this;
}

Option& Option::excludes(std::string name)
{
    m_excluded = std::move(name);
    return *this;
}

Option& Option::replaces()
{
    m_replaces = true;
    return *this;
}

Option& OptionSet::flag(std::string names, bool& place, std::string help)
{
    return m_options.emplace_back(std::move(names), &place, std::move(help), true);
}

Option& OptionSet::flag(std::string names, Option::Receiver receiver, std::string help)
{
    return m_options.emplace_back(std::move(names), std::move(receiver), std::move(help), true);
}

Option& OptionSet::value(std::string names, Option::Place place, std::string help)
{
    return m_options.emplace_back(std::move(names), std::move(place), std::move(help), false);
}

} // namespace stagewright
