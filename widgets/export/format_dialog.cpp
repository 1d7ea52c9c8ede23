#include "widgets/export/format_dialog.h"

#include <QCheckBox>
#include <QDialogButtonBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QSettings>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int formatRole = Qt::UserRole;
const QString lastKey = u"export/format"_s;

} // namespace

FormatDialog::FormatDialog(bool orderOnly, QWidget* parent) : QDialog(parent)
{
    setWindowTitle(u"Export for other tools"_s);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(14);
    auto* columns = new QHBoxLayout;
    columns->setSpacing(18);
    layout->addLayout(columns, 1);

    m_list = new QListWidget(this);
    m_list->setObjectName(u"boxed"_s);
    m_list->setAccessibleName(u"Format"_s);
    m_list->setToolTip(u"What the run is written as"_s);
    for (std::size_t i = 0; i < allFormats().size(); ++i) {
        const FormatInfo& format = *allFormats()[i];
        if (format.write == nullptr || (orderOnly && !format.order)) continue;
        auto* item = new QListWidgetItem(sentence(format.title), m_list);
        item->setData(formatRole, static_cast<int>(i));
    }
    m_list->setMinimumWidth(m_list->sizeHintForColumn(0) + 28);
    columns->addWidget(m_list);

    m_right = new QVBoxLayout;
    m_right->setSpacing(12);
    m_writes = makeLabel({}, "secondary", this);
    m_writes->setWordWrap(true);
    m_writes->setMinimumWidth(360);
    m_right->addWidget(m_writes);
    m_right->addStretch(1);
    m_fault = makeLabel({}, "worse", this, true);
    m_fault->setWordWrap(true);
    m_fault->hide();
    m_right->addWidget(m_fault);
    columns->addLayout(m_right, 1);

    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
    buttons->button(QDialogButtonBox::Cancel)->setText(u"Cancel"_s);
    m_place = new QPushButton(this);
    m_place->setObjectName(u"primary"_s); // before the box has it, which fixes its style
    buttons->addButton(m_place, QDialogButtonBox::AcceptRole);
    m_place->setDefault(true);
    layout->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(buttons, &QDialogButtonBox::accepted, this, &FormatDialog::proceed);
    connect(m_list, &QListWidget::itemDoubleClicked, this, &FormatDialog::proceed);
    connect(m_list, &QListWidget::currentRowChanged, this, &FormatDialog::chosen);
    const FormatInfo* last = findFormat(QSettings().value(lastKey).toString().toStdString());
    m_list->setCurrentRow(0);
    if (last != nullptr) choose(*last);
    m_list->setFocus();
}

std::vector<const FormatInfo*> FormatDialog::formats() const
{
    std::vector<const FormatInfo*> out;
    out.reserve(static_cast<std::size_t>(m_list->count()));
    for (int i = 0; i < m_list->count(); ++i)
        out.push_back(allFormats()[static_cast<std::size_t>(m_list->item(i)->data(formatRole).toInt())]);
    return out;
}

const FormatInfo& FormatDialog::format() const { return *formats()[static_cast<std::size_t>(m_list->currentRow())]; }

void FormatDialog::choose(const FormatInfo& format)
{
    const auto offered = formats();
    for (std::size_t i = 0; i < offered.size(); ++i)
        if (offered[i] == &format) m_list->setCurrentRow(static_cast<int>(i));
}

void FormatDialog::chosen()
{
    const FormatInfo& now = format();
    m_fault->hide();
    m_writes->setText(sentence(now.writes));
    m_place->setText(now.folder ? u"Choose a folder…"_s : u"Choose a file…"_s);
    delete m_options;
    m_fields.clear();
    m_options = new QWidget(this);
    auto* form = new QVBoxLayout(m_options);
    form->setContentsMargins(0, 0, 0, 0);
    form->setSpacing(8);
    for (const FormatOption& option : now.options) {
        // "Insert sends and receives: just-in-time, …": what it does, and the values below it.
        const QString help = sentence(option.help);
        const auto end = help.indexOf(QRegularExpression(u"[:,] "_s));
        const QString title = end < 0 ? help : help.left(end);
        QWidget* field = nullptr;
        if (option.value.empty()) {
            field = new QCheckBox(title, m_options);
        } else {
            auto* line = new QLineEdit(m_options);
            line->setPlaceholderText(
                QString::fromUtf8(option.value.data(), static_cast<qsizetype>(option.value.size())));
            form->addWidget(makeLabel(title, "secondary", m_options));
            field = line;
        }
        field->setAccessibleName(title);
        field->setToolTip(help);
        form->addWidget(field);
        if (end >= 0) {
            QLabel* meaning = makeLabel(help.mid(end + 2), "faint", m_options);
            meaning->setWordWrap(true);
            form->addWidget(meaning);
        }
        m_fields[option.name] = field;
    }
    m_right->insertWidget(1, m_options);
}

TextPairs FormatDialog::options() const
{
    TextPairs out;
    for (const FormatOption& option : format().options) {
        const QWidget* field = m_fields.at(option.name);
        if (const auto* box = qobject_cast<const QCheckBox*>(field)) {
            if (box->isChecked()) out.emplace_back(option.name, std::string());
        } else if (const QString value = qobject_cast<const QLineEdit*>(field)->text().trimmed(); !value.isEmpty()) {
            out.emplace_back(option.name, value.toStdString());
        }
    }
    return out;
}

QStringList FormatDialog::optionNames() const
{
    QStringList out;
    for (const auto& [name, field] : m_fields)
        out << QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
    return out;
}

void FormatDialog::setOption(std::string_view name, const QString& value)
{
    const auto found = m_fields.find(name);
    if (found == m_fields.end()) return;
    if (auto* box = qobject_cast<QCheckBox*>(found->second))
        box->setChecked(true);
    else
        qobject_cast<QLineEdit*>(found->second)->setText(value);
}

void FormatDialog::showFault(const Error& error)
{
    m_fault->setText(sentence(error.remedy.empty() ? error.message : error.message + "; " + error.remedy));
    m_fault->show();
}

QString FormatDialog::faultText() const { return m_fault->isHidden() ? QString() : m_fault->text(); }

void FormatDialog::setBusy(bool busy) { m_place->setEnabled(!busy); }

void FormatDialog::proceed()
{
    m_fault->hide();
    const TextPairs given = options();
    for (const FormatOption& option : format().options)
        for (const auto& [name, value] : given)
            if (name == option.name && option.check != nullptr)
                if (auto right = option.check(value); !right) return showFault(right.error());
    QSettings().setValue(lastKey,
                         QString::fromUtf8(format().name.data(), static_cast<qsizetype>(format().name.size())));
    emit placeAsked();
}

} // namespace stagewright
